//! Why a partition cannot go on, as far as it matters what comes next.

use crate::error::Fault;
use crate::error::OpenError;

/// Whether another node has taken over.
pub(crate) fn is_deposed(error: &OpenError) -> bool {
    matches!(error, OpenError::Fault(Fault::Deposed | Fault::Replaced))
}

/// Whether the disk could not be written or read, which says nothing of what is on it.
pub(crate) fn is_of_disk(error: &OpenError) -> bool {
    matches!(error, OpenError::Fault(fault) if is_fault_of_disk(fault))
}

/// The same of a fault.
pub(crate) fn is_fault_of_disk(fault: &Fault) -> bool {
    match fault {
        Fault::File(_) => true,
        Fault::Store(error) => matches!(**error, redb::Error::Io(_) | redb::Error::PreviousIo),
        _ => false,
    }
}
