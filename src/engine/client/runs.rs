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
        let asking = |wait| (wait, Box::pin(self.receive_run(len_max, wait)));
        let waits = std::iter::once(wait).chain(std::iter::repeat(Duration::ZERO));
        gathered(waits.take(max).map(asking).collect()).await
    }
}

/// What those receive who ask, each with how long it may wait.
///
/// One that waits may be overtaken by one that asked after it: a request between the two brought what the second was handed.
/// So as soon as there is something, only those that do not wait are waited for; what the others are handed later is given
/// back uncounted, because their futures are gone.
async fn gathered<F: Future<Output = Result<Option<Run>, ReceiveError>> + ?Sized>(
    mut asked: Vec<(Duration, Pin<Box<F>>)>,
) -> Result<Vec<Run>, ReceiveError> {
    let (mut received, mut refused) = (Unbegun::default(), None);
    std::future::poll_fn(|context| {
        asked.retain_mut(|(_, asked)| match asked.as_mut().poll(context) {
            Poll::Pending => true,
            Poll::Ready(answer) => {
                match answer {
                    Ok(run) => received.0.extend(run),
                    Err(error) => refused = Some(error),
                }
                false
            }
        });
        let only_wait = asked.iter().all(|(wait, _)| !wait.is_zero());
        let is_enough = asked.is_empty() || (only_wait && !received.0.is_empty());
        if is_enough { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    match refused {
        // What was received nevertheless is begun; whoever asks again is refused again.
        Some(error) if received.0.is_empty() => Err(error),
        _ => Ok(std::mem::take(&mut received.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;
    use crate::queue::QueueOptions;

    const MINUTE: Duration = Duration::from_secs(60);

    type RunFuture<'a> = Pin<Box<dyn Future<Output = Result<Option<Run>, ReceiveError>> + 'a>>;

    #[tokio::test]
    async fn a_run_that_was_received_waits_for_nobody_who_waits_and_that_one_takes_nothing() {
        let (engine, _clock) = crate::testing::engine().await.unwrap();
        let queue = engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
        queue.send(Message::new("1").workflow("one")).await.unwrap();
        let run = queue.receive_run(1, Duration::ZERO).await.unwrap();
        let first: RunFuture<'_> = Box::pin(queue.receive_run(1, MINUTE));
        let second: RunFuture<'_> = Box::pin(std::future::ready(Ok(run)));
        let gathered = tokio::select! {
            biased;
            gathered = gathered(vec![(MINUTE, first), (Duration::ZERO, second)]) => gathered.unwrap(),
            () = std::future::ready(()) => panic!("it waits, and nobody renews the lock of what was received"),
        };
        assert_eq!(gathered.len(), 1);
        queue.send(Message::new("2").workflow("two")).await.unwrap();
        let next = queue.receive_run(1, MINUTE).await.unwrap().expect("nobody else has it");
        assert_eq!(next.messages()[0].delivery_count, 1);
    }
}
