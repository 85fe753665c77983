//! Blame: when several messages fail together, only the one that fails alone, too, is exhausted.

use std::time::Duration;

use seriatim::Abandon;
use seriatim::Context;
use seriatim::Failure;
use seriatim::Order;
use seriatim::Processor;
use seriatim::QueueOptions;
use seriatim::Raw;
use seriatim::Run;
use seriatim::processor::BatchOutcome;
use seriatim::queue::ExhaustedPolicy;
use seriatim::view::WorkflowStatus;

use crate::promises::fixture::FileFixture;
use crate::promises::fixture::Fixture;
use crate::promises::fixture::body;
use crate::promises::fixture::seconds;
use crate::promises::processor::until;

fn skipping(delivery_count_max: u32) -> QueueOptions {
    QueueOptions::default().delivery_count_max(delivery_count_max).exhausted(ExhaustedPolicy::Skip)
}

async fn fixture_of(count: u64, options: QueueOptions) -> Fixture {
    let fixture = Fixture::new(options).await;
    for number in 1..=count {
        fixture.send("w", &number.to_string()).await;
    }
    fixture
}

async fn run(fixture: &Fixture) -> Run {
    let run = fixture.queue.receive_run(100, Duration::ZERO).await.expect("the queue exists");
    run.expect("a run is ready")
}

/// The bodies of a run with their delivery counts.
fn shown(run: &Run) -> Vec<(String, u32)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    run.messages().iter().map(|message| (text(&message.body), message.delivery_count)).collect()
}

#[tokio::test]
async fn a_batch_handler_that_panics_on_one_of_eight_exhausts_only_that_one() {
    for fails_by_error in [false, true] {
        let fixture = fixture_of(8, skipping(2)).await;
        let handler = move |_: Context, bodies: Vec<Raw>| async move {
            if bodies.iter().any(|body| body.0 == "5") {
                match fails_by_error {
                    true => return Err(Failure::new("cannot read it")),
                    false => panic!("cannot read it"),
                }
            }
            Ok::<_, Failure>(BatchOutcome::all())
        };
        let pool = Processor::new(fixture.queue.clone()).start_batches(8, handler);
        until(|| async {
            fixture.clock.advance(seconds(10));
            let counts = fixture.counts().await;
            counts.completed + counts.dead_lettered == 8
        })
        .await;
        pool.stop().await.unwrap();
        let dead = fixture.queue.dead_letters(None, 10).await.unwrap();
        assert_eq!(dead.len(), 1, "only the guilty one");
        let peeked = fixture.queue.peek(seriatim::SequenceNumber::new(0), 10).await.unwrap();
        let reasons: Vec<_> = peeked[0].attempts.iter().map(|attempt| attempt.reason.as_str()).collect();
        assert_eq!(reasons.len(), 3, "one of all together, and two alone: {reasons:?}");
        assert!(
            reasons[0].ends_with("cannot read it; it was one of 8 messages handled together"),
            "{reasons:?}"
        );
        assert_eq!(peeked[0].delivery_count, 2, "the one of all together was returned");
    }
}

#[tokio::test]
async fn a_run_whose_lock_is_lost_is_handed_out_one_by_one_and_its_one_is_returned_once() {
    let fixture = fixture_of(3, skipping(10)).await;
    let lost = run(&fixture).await;
    assert_eq!(shown(&lost), [("1".into(), 1), ("2".into(), 1), ("3".into(), 1)]);
    fixture.clock.advance(seconds(31));
    for expected in [1, 2, 3] {
        let mut alone = run(&fixture).await;
        assert_eq!(
            shown(&alone),
            [("1".into(), expected)],
            "alone, and counted from its first time alone on"
        );
        alone.abandon_all(Abandon::now()).await.unwrap();
    }
    fixture.must().await.complete().await.unwrap();
    assert_eq!(shown(&run(&fixture).await), [("2".into(), 1)]);
    drop(lost);
}

#[tokio::test]
async fn what_comes_behind_suspects_is_handed_out_together_again() {
    let fixture = fixture_of(2, skipping(10)).await;
    run(&fixture).await.abandon_all(Abandon::now()).await.unwrap();
    for number in 3..=5 {
        fixture.send("w", &number.to_string()).await;
    }
    for _ in 0..2 {
        run(&fixture).await.complete_all().await.unwrap();
    }
    assert_eq!(shown(&run(&fixture).await), [("3".into(), 1), ("4".into(), 1), ("5".into(), 1)]);
}

#[tokio::test]
async fn a_suspect_is_alone_with_a_consumer_that_takes_its_workflow_whole() {
    let fixture = fixture_of(2, skipping(10)).await;
    drop(run(&fixture).await);
    fixture.send("w", "3").await;
    fixture.send("w", "4").await;
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    for expected in ["1", "2"] {
        let mut alone = taken.receive(10, Duration::ZERO).await.unwrap();
        assert_eq!(alone.iter().map(body).collect::<Vec<_>>(), [expected]);
        assert!(taken.receive(10, Duration::ZERO).await.unwrap().is_empty(), "nothing beside a suspect");
        alone[0].complete().await.unwrap();
    }
    let together = taken.receive(10, Duration::ZERO).await.unwrap();
    assert_eq!(together.iter().map(body).collect::<Vec<_>>(), ["3", "4"]);
}

#[tokio::test]
async fn a_suspect_that_is_released_has_nothing_counted() {
    let fixture = fixture_of(2, skipping(10)).await;
    drop(run(&fixture).await);
    fixture.must().await.release().await.unwrap();
    assert_eq!(shown(&run(&fixture).await), [("1".into(), 1)]);
}

#[tokio::test]
async fn a_run_of_one_has_failed_by_itself() {
    let fixture = fixture_of(1, skipping(1)).await;
    drop(run(&fixture).await);
    assert_eq!(fixture.counts().await.dead_lettered, 1);
}

#[tokio::test]
async fn suspects_hold_no_workflow_before_one_of_them_fails_alone() {
    let options = skipping(1).order(Order::Arrival).delivery_count_max(1);
    let fixture = fixture_of(3, options.exhausted(ExhaustedPolicy::Hold)).await;
    drop(run(&fixture).await);
    assert_eq!(fixture.status("w").await, Some(WorkflowStatus::Ready));
    fixture.must().await.complete().await.unwrap();
    fixture.must().await.abandon().await.unwrap();
    assert!(matches!(fixture.status("w").await, Some(WorkflowStatus::Held(_))));
    assert_eq!(fixture.counts().await.exhausted, 1);
}

#[tokio::test]
async fn suspects_survive_a_restart_and_so_does_that_their_one_was_returned() {
    let fixture = FileFixture::new();
    let (engine, queue) = fixture.open().await;
    for number in 1..=3 {
        queue.send(seriatim::Message::new(number.to_string()).workflow("w")).await.unwrap();
    }
    // Nobody says anything of the run: its process is gone.
    queue.receive_run(10, Duration::ZERO).await.unwrap().unwrap().keep();
    engine.close().await;
    for expected in [1, 2, 3] {
        let (engine, queue) = fixture.open().await;
        let run = queue.receive_run(10, Duration::ZERO).await.unwrap().unwrap();
        assert_eq!(
            shown(&run),
            [("1".into(), expected)],
            "a suspect is alone, and loops no more than others do"
        );
        run.keep();
        engine.close().await;
    }
}
