//! A program, and what is read of it meanwhile.

use crate::limits;

/// Runs two futures until the first has ended; then the second may go on a little, if it has not ended before.
pub(super) async fn beside<T>(first: impl Future<Output = T>, second: impl Future<Output = ()>) -> T {
    let (mut first, mut second) = (std::pin::pin!(first), std::pin::pin!(second));
    let mut is_over = false;
    let ended = loop {
        tokio::select! {
            ended = &mut first => break ended,
            () = &mut second, if !is_over => is_over = true,
        }
    };
    if !is_over {
        let _ = tokio::time::timeout(limits::OUTPUT_GRACE, second).await;
    }
    ended
}
