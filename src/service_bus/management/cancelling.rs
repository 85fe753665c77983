//! Cancelling messages that were scheduled.

use futures_util::future::join_all;

use crate::engine::Queue;
use crate::id::SequenceNumber;
use crate::limits;
use crate::service_bus::refusal::AmqpRefusal;

/// Cancels messages of one queue or several.
pub(super) async fn cancel_all(numbers: &[(&Queue, SequenceNumber)]) -> Result<(), AmqpRefusal> {
    let mut refused = None;
    for together in numbers.chunks(limits::SERVICE_BUS_CANCELS_TOGETHER) {
        let cancels = together.iter().map(|(queue, number)| queue.cancel(*number));
        let answers = join_all(cancels).await;
        refused = refused.or(answers.into_iter().find_map(Result::err));
    }
    match refused {
        None => Ok(()),
        Some(error) => Err(error.into()),
    }
}
