//! What handlers wrote stays with their failed attempts, within limits.

use seriatim::Abandon;
use seriatim::Context;
use seriatim::Failure;
use seriatim::Outcome;
use seriatim::Processor;
use seriatim::QueueOptions;
use seriatim::Raw;
use seriatim::limits;
use seriatim::view::MessageView;
use seriatim::view::Output;

use crate::promises::fixture::Fixture;
use crate::promises::processor::peeked;
use crate::promises::processor::until;

/// An error with a cause.
#[derive(Debug)]
struct Outer(std::io::Error);

impl std::fmt::Display for Outer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cannot book")
    }
}

impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[tokio::test]
async fn an_error_of_a_handler_is_kept_with_its_causes() {
    let fixture = Fixture::new(QueueOptions::default().delivery_count_max(1)).await;
    fixture.send("w", "1").await;
    let handler = |_: Context, _: Raw| async {
        let error = Outer(std::io::Error::other("the disk is gone"));
        Err::<Outcome, _>(Failure::caused_by(&error))
    };
    let pool = Processor::new(fixture.queue.clone()).start(handler);
    until(|| async { fixture.counts().await.exhausted == 1 }).await;
    pool.stop().await.unwrap();
    let attempt = peeked(&fixture).await.attempts.remove(0);
    assert_eq!(
        (attempt.reason.as_str(), attempt.output.text.as_str()),
        ("cannot book", "cannot book\nthe disk is gone")
    );
}

#[tokio::test]
async fn of_many_long_outputs_the_newest_are_kept_and_the_rest_is_counted() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    for attempt in 1..=5 {
        let output = Output::end_of(attempt.to_string().repeat(5_000));
        fixture.must().await.abandon_with(Abandon::now().output(output)).await.unwrap();
    }
    let MessageView { attempts, .. } = peeked(&fixture).await;
    let kept: Vec<usize> = attempts.iter().map(|attempt| attempt.output.text.len()).collect();
    assert_eq!(kept, [0, 0, 0, 4_096, 4_096]);
    assert_eq!(kept.iter().sum::<usize>(), limits::OUTPUTS_KEPT_BYTES_MAX);
    assert!(attempts.iter().all(|one| one.output.text.len() as u64 + one.output.cut_bytes == 5_000));
    assert!(attempts[4].output.text.starts_with('5'));
}
