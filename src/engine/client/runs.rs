//! Receiving runs of several workflows at once.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use crate::engine::client::queue::Queue;
use crate::engine::client::run::Run;
use crate::error::ReceiveError;

/// Runs that nobody has begun: dropped, they are given back uncounted.
#[derive(Default)]
struct Unbegun(Vec<Run>);

impl Drop for Unbegun {
    fn drop(&mut self) {
        self.0.drain(..).for_each(Run::give_back);
    }
}

impl Queue {
    /// Receives runs of up to `max` different workflows, each of up to `len_max` consecutive messages, waiting up to `wait` for
    /// the first. They are asked for together, and so handed out in one commit.
    ///
    /// # Errors
    /// As [`Queue::receive`].
    pub(crate) async fn receive_runs(
        &self,
        max: usize,
        len_max: usize,
        wait: Duration,
    ) -> Result<Vec<Run>, ReceiveError> {
        // Only the first waits: what comes while it does is for the next time.
        let asking = |at| self.receive_run(len_max, if at == 0 { wait } else { Duration::ZERO });
        let mut asked: Vec<Pin<Box<_>>> = (0..max).map(|at| Box::pin(asking(at))).collect();
        let (mut received, mut refused) = (Unbegun::default(), None);
        std::future::poll_fn(|context| {
            asked.retain_mut(|asked| match asked.as_mut().poll(context) {
                Poll::Pending => true,
                Poll::Ready(answer) => {
                    match answer {
                        Ok(run) => received.0.extend(run),
                        Err(error) => refused = Some(error),
                    }
                    false
                }
            });
            if asked.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        match refused {
            // What was received nevertheless is begun; whoever asks again is refused again.
            Some(error) if received.0.is_empty() => Err(error),
            _ => Ok(std::mem::take(&mut received.0)),
        }
    }
}
