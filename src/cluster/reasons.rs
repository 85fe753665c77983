//! Why a partition cannot go on, as far as it matters what comes next.

use crate::error::Fault;
use crate::error::OpenError;

/// Whether another node has taken over.
pub(crate) fn is_deposed(error: &OpenError) -> bool {
    matches!(error, OpenError::Fault(Fault::Deposed | Fault::Replaced))
}

/// Whether the disk could not be written or read, which says nothing of what is on it.
fn is_of_disk(error: &OpenError) -> bool {
    matches!(error, OpenError::Fault(fault) if is_fault_of_disk(fault))
}

/// Whether it may be over later: a disk has room again, servers of a log that have lost something are led by one that has it, or
/// whoever has the file open for a moment has closed it.
pub(crate) fn may_pass(error: &OpenError) -> bool {
    is_of_disk(error) || matches!(error, OpenError::Fault(Fault::Log(_)) | OpenError::Held { .. })
}

/// Whether a fault is of the disk.
pub(crate) fn is_fault_of_disk(fault: &Fault) -> bool {
    match fault {
        Fault::File(_) => true,
        Fault::Store(error) => matches!(**error, redb::Error::Io(_) | redb::Error::PreviousIo),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_somebody_has_open_is_tried_again_and_one_that_is_damaged_is_not() {
        let held = OpenError::Held { path: "a".into(), holder: "process 4711".to_owned() };
        assert!(may_pass(&held));
        assert!(!may_pass(&OpenError::Damaged { path: "a".into(), detail: "a row is missing".to_owned() }));
    }
}
