//! The records of formats 1 to 3, frozen as they were written, and what each becomes today.
//!
//! Nothing in here ever changes but the right side of a conversion: when a record of today gets another field, its
//! conversion no longer compiles until it says what the field of an older record is. Names, numbers and instants are
//! read by the words of today, which are plain texts and numbers; the bytes of all of it are pinned by `golden.txt`.

#[cfg(test)]
mod golden;
mod messages;
mod numbers;
mod operators;
mod queues;
mod reminders;
mod tables;
mod workflows;

pub(crate) use crate::engine::store::format3::numbers::Batch;
pub(crate) use crate::engine::store::format3::numbers::Header;
pub(crate) use crate::engine::store::format3::numbers::Numbers;
pub(crate) use crate::engine::store::format3::queues::QueueRecord;
pub(crate) use crate::engine::store::format3::queues::Tally;
pub(crate) use crate::engine::store::format3::reminders::reminder_key;
pub(crate) use crate::engine::store::format3::tables::OldTable;
pub(crate) use crate::engine::store::format3::tables::TABLES;
