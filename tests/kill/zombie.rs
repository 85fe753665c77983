//! The zombie.
use crate::kill::voice::Task;
pub(crate) async fn live(_task: Task) {}
