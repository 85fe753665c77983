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

/// Whether it may be over later: a disk has room again, or servers of a log that have lost something are led by one that has it.
pub(crate) fn may_pass(error: &OpenError) -> bool {
    is_of_disk(error) || matches!(error, OpenError::Fault(Fault::Log(_)))
}

/// Whether a fault is of the disk.
pub(crate) fn is_fault_of_disk(fault: &Fault) -> bool {
    match fault {
        Fault::File(_) => true,
        Fault::Store(error) => matches!(**error, redb::Error::Io(_) | redb::Error::PreviousIo),
        _ => false,
    }
}
