//! Being asked to stop a second time, which ends at once what the first time ends in order.

use crate::cli::limits;

/// Waits until somebody who has asked once asks again, by what waits for one signal. What comes together with the first is the
/// same: a terminal sends a signal to all processes in it, and those that started another one hand it on.
pub(crate) async fn asked_again(mut asked: impl AsyncFnMut()) {
    let same = async {
        loop {
            asked().await;
        }
    };
    let _ = tokio::time::timeout(limits::SAME_SIGNAL, same).await;
    asked().await;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_handed_on_by_others_is_the_first_signal_and_what_comes_later_the_second() {
        let (signal, mut signals) = unbounded_channel();
        signal.send(()).unwrap();
        signal.send(()).unwrap();
        let mut again = std::pin::pin!(asked_again(async || {
            signals.recv().await;
        }));
        assert!(tokio::time::timeout(Duration::from_secs(60), &mut again).await.is_err(), "it is one signal");
        signal.send(()).unwrap();
        again.await;
    }
}
