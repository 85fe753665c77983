//! Rates: no more is handed out than a queue's rate allows, nothing is lost or passed, and whoever waits is served in time.

use std::time::Duration;

use seriatim::Client;
use seriatim::Clock;
use seriatim::Engine;
use seriatim::Message;
use seriatim::Queue;
use seriatim::QueueOptions;
use seriatim::queue::Rate;
use seriatim::testing::ManualClock;
use seriatim::testing::engine;
use seriatim::view::WorkflowStatus;

use crate::promises::fixture::body;
use crate::promises::fixture::complete_ready;

const SECOND: Duration = Duration::from_secs(1);

/// A queue with a rate, and messages in it: three of each of some workflows.
async fn queue(rate: Rate, workflows: usize) -> (Engine, ManualClock, Queue) {
    let (engine, clock) = engine().await.expect("an engine in memory opens");
    let options = QueueOptions::default().rate(rate);
    let queue = engine.client().create_queue("q", options).await.expect("the queue is new");
    for number in 0..3 {
        for workflow in 0..workflows {
            let message = Message::new(format!("{number}")).workflow(format!("w{workflow}"));
            queue.send(message).await.expect("there is room");
        }
    }
    (engine, clock, queue)
}

fn burst(messages: u32, burst: u32) -> Rate {
    Rate { burst: Some(burst), ..Rate::per_second(messages) }
}

#[tokio::test]
async fn no_more_than_a_burst_and_then_the_rate_is_handed_out() {
    let (_engine, clock, queue) = queue(burst(2, 4), 10).await;
    assert_eq!(complete_ready(&queue).await, 4, "the burst");
    clock.advance(Duration::from_millis(499));
    assert_eq!(complete_ready(&queue).await, 0);
    clock.advance(Duration::from_millis(1));
    assert_eq!(complete_ready(&queue).await, 1);
    clock.advance(3 * SECOND / 2);
    assert_eq!(complete_ready(&queue).await, 3);
    clock.advance(60 * SECOND);
    assert_eq!(complete_ready(&queue).await, 4, "never more than the burst");
}

#[tokio::test]
async fn a_batch_has_no_more_messages_than_the_rate_has_left() {
    let (_engine, clock, queue) = queue(burst(1, 5), 10).await;
    let first = queue.receive_many(10, Duration::ZERO).await.expect("the engine is open");
    assert_eq!(first.len(), 5, "the burst");
    clock.advance(2 * SECOND);
    let second = queue.receive_many(10, Duration::ZERO).await.expect("the engine is open");
    assert_eq!(second.len(), 2, "what two seconds have brought");
}

#[tokio::test]
async fn each_message_of_a_batch_a_run_and_a_workflow_taken_whole_counts() {
    let (_engine, clock, queue) = queue(burst(1, 5), 4).await;
    assert_eq!(queue.receive_many(3, Duration::ZERO).await.unwrap().len(), 3);
    let run = queue.receive_run(3, Duration::ZERO).await.unwrap().expect("the fourth workflow");
    assert_eq!(run.messages().len(), 2, "as many as the rate has left");
    drop(run);
    clock.advance(2 * SECOND);
    let taken = queue.accept_next_workflow(Duration::ZERO).await.unwrap().expect("taking it costs nothing");
    let two = taken.receive(3, Duration::ZERO).await.unwrap();
    assert_eq!(two.iter().map(body).collect::<Vec<_>>(), ["0", "1"]);
    clock.advance(SECOND);
    let last = taken.receive(3, Duration::ZERO).await.unwrap();
    assert_eq!(last.iter().map(body).collect::<Vec<_>>(), ["2"], "one second, one message, in its order");
}

#[tokio::test]
async fn whoever_waits_is_served_at_the_very_instant_and_in_the_order_of_coming() {
    let (_engine, clock, queue) = queue(burst(1, 1), 3).await;
    assert_eq!(complete_ready(&queue).await, 1);
    let wait = |queue: &Queue| {
        let queue = queue.clone();
        tokio::spawn(async move { queue.receive(60 * SECOND).await.unwrap().map(|one| body(&one)) })
    };
    let first = wait(&queue);
    settled(&queue).await;
    let second = wait(&queue);
    settled(&queue).await;
    clock.advance(Duration::from_millis(999));
    settled(&queue).await;
    assert!(!first.is_finished(), "it is a millisecond too soon");
    clock.advance(Duration::from_millis(1));
    assert!(first.await.unwrap().is_some());
    assert!(!second.is_finished());
    clock.advance(SECOND);
    assert!(second.await.unwrap().is_some());
}

/// Lets the engine and whoever waits for it come to rest.
async fn settled(queue: &Queue) {
    for _ in 0..20 {
        queue.view().await.expect("the queue exists");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_holder_of_a_workflow_that_waits_is_served_when_the_rate_allows_it() {
    let (_engine, clock, queue) = queue(burst(1, 1), 1).await;
    let taken = queue.accept_next_workflow(Duration::ZERO).await.unwrap().expect("it is there");
    let mut burst = taken.receive(1, Duration::ZERO).await.unwrap();
    burst[0].complete().await.unwrap();
    assert!(taken.receive(1, Duration::ZERO).await.unwrap().is_empty());
    let waits = tokio::spawn(async move {
        taken.receive(1, 60 * SECOND).await.unwrap().iter().map(body).collect::<Vec<_>>()
    });
    settled(&queue).await;
    clock.advance(SECOND);
    assert_eq!(waits.await.unwrap(), ["1"]);
}

#[tokio::test]
async fn the_holders_of_workflows_that_wait_for_a_rate_are_served_in_turn() {
    let (_engine, clock, queue) = queue(burst(1, 1), 2).await;
    let mut burst = queue.receive(Duration::ZERO).await.unwrap().expect("the burst");
    burst.complete().await.unwrap();
    let (served, mut serving) = tokio::sync::mpsc::unbounded_channel();
    for holder in 0..2 {
        let taken = queue.accept_next_workflow(Duration::ZERO).await.unwrap().expect("it has messages");
        let served = served.clone();
        tokio::spawn(async move {
            loop {
                for mut delivery in taken.receive(1, 60 * SECOND).await.unwrap() {
                    delivery.complete().await.unwrap();
                    served.send(holder).unwrap();
                }
            }
        });
    }
    let mut counts = [0, 0];
    for _ in 0..4 {
        settled(&queue).await;
        clock.advance(SECOND);
        counts[serving.recv().await.expect("both wait")] += 1;
    }
    assert_eq!(counts, [2, 2], "neither waits for ever");
}

#[tokio::test]
async fn a_rate_that_changes_holds_from_the_next_hand_out_for_those_who_wait_too() {
    let (engine, clock, queue) = queue(Rate::per_hour(1), 3).await;
    assert_eq!(complete_ready(&queue).await, 1);
    let waits = {
        let queue = queue.clone();
        tokio::spawn(async move { queue.receive(60 * SECOND).await.unwrap().is_some() })
    };
    settled(&queue).await;
    change(engine.client(), Some(Rate::per_second(10))).await;
    clock.advance(SECOND);
    assert!(waits.await.unwrap(), "an hour is not waited for");
    change(engine.client(), None).await;
    assert_eq!(
        complete_ready(&queue).await,
        8,
        "and without a rate nothing is; the one that was dropped is back"
    );
}

async fn change(client: &Client, rate: Option<Rate>) {
    let options = QueueOptions::default().rate(rate);
    client.change_queue("q", options).await.expect("the queue exists");
}

#[tokio::test]
async fn what_waits_for_the_rate_is_shown_with_the_instant_at_which_it_goes_on() {
    let (_engine, clock, queue) = queue(burst(1, 1), 2).await;
    assert_eq!(queue.view().await.unwrap().rate_limited_until, None);
    let mut held = queue.receive(Duration::ZERO).await.unwrap().expect("the burst");
    let goes_on = clock.now() + SECOND;
    assert_eq!(queue.view().await.unwrap().rate_limited_until, Some(goes_on));
    let workflows = queue.workflows(None, 10).await.unwrap();
    let until = |status: WorkflowStatus| {
        let same = |view: &&seriatim::view::WorkflowView| {
            std::mem::discriminant(&view.status) == std::mem::discriminant(&status)
        };
        workflows.iter().find(same).expect("there is one").rate_limited_until
    };
    assert_eq!(until(WorkflowStatus::Ready), Some(goes_on));
    assert_eq!(until(WorkflowStatus::Locked { until: goes_on }), None, "that one waits for its holder");
    held.complete().await.unwrap();
    clock.advance(SECOND);
    assert_eq!(queue.view().await.unwrap().rate_limited_until, None);
}

#[tokio::test]
async fn a_message_fetched_by_its_number_is_handed_out_at_once_and_paid_for_by_the_next() {
    let (_engine, clock, queue) = queue(burst(1, 1), 2).await;
    let mut first = queue.receive(Duration::ZERO).await.unwrap().expect("the burst");
    let number = first.sequence_number();
    first.defer().await.unwrap();
    let fetched = queue.receive_deferred(&[number]).await.unwrap();
    assert_eq!(fetched.len(), 1);
    clock.advance(SECOND);
    assert!(queue.receive(Duration::ZERO).await.unwrap().is_none());
    clock.advance(SECOND);
    assert!(queue.receive(Duration::ZERO).await.unwrap().is_some());
}

#[tokio::test]
async fn a_rate_out_of_range_is_refused_by_name() {
    let (engine, _clock) = engine().await.unwrap();
    let options = QueueOptions::default().rate(Rate::per_second(0));
    let refused = engine.client().create_queue("q", options).await.expect_err("it is refused");
    assert!(refused.to_string().contains("rate"), "{refused}");
}

#[tokio::test]
async fn nothing_is_due_because_of_a_rate_where_nothing_is_ready() {
    let (engine, clock, queue) = queue(burst(1, 1), 1).await;
    for _ in 0..2 {
        assert_eq!(complete_ready(&queue).await, 1);
        assert_eq!(engine.client().next_due().await.unwrap(), Some(clock.now() + SECOND));
        clock.advance(SECOND);
    }
    assert_eq!(complete_ready(&queue).await, 1);
    assert_eq!(engine.client().next_due().await.unwrap(), None, "nobody waits for what there is not");
}
