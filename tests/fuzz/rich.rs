//! A file with something of everything.

use std::path::Path;
use std::time::Duration;

use seriatim::Abandon;
use seriatim::Actor;
use seriatim::Completion;
use seriatim::Engine;
use seriatim::Message;
use seriatim::Order;
use seriatim::Outcome;
use seriatim::QueueOptions;
use seriatim::Timestamp;
use seriatim::id::IdempotencyKey;
use seriatim::testing::ManualClock;
use seriatim::topic::Rule;

/// A file with rows in every table, whose engine was closed in order. With a small window most of them are flushed.
pub(crate) async fn rich_file(path: &Path, window_bytes: u64) {
    let clock = ManualClock::new(Timestamp::from_millis(1_000_000));
    let builder = Engine::builder(path).clock(clock).window_bytes(window_bytes);
    let engine = builder.open().await.expect("a new file");
    let client = engine.client().clone();
    let options = QueueOptions::by_position()
        .duplicate_window(Duration::from_secs(3_600))
        .time_to_live(Duration::from_secs(3_600));
    let queue = client.create_queue("positions", options).await.expect("a new queue");
    for workflow in ["a", "b", "c", "d"] {
        let at = |n: u64| Message::new(n.to_string()).workflow(workflow).position(n);
        let all = [1, 2, 3, 4, 6].map(|n| at(n).message_id(format!("{workflow}{n}")));
        queue.send_batch(all).await.expect("accepted");
    }
    let (key, message) = (IdempotencyKey::new("k", 1).expect("a good key"), Message::new("once"));
    queue.send_batch_once(key, [message.workflow("e").position(1)]).await.expect("accepted");
    let mut endings = [
        Outcome::Defer,
        Outcome::DeadLetter { reason: "asked".to_owned(), description: String::new() },
        Outcome::Abandon(Abandon::after(Duration::from_secs(3_600))),
    ]
    .into_iter();
    for mut delivery in queue.receive_many(4, Duration::ZERO).await.expect("a queue") {
        match endings.next() {
            Some(ending) => delivery.end(ending).await.expect("the lock is held"),
            None => drop(delivery.complete_with(Completion::new().state("state")).await.expect("held")),
        }
    }
    let ada = client.acting_as(Actor::new("ada").expect("a good name"));
    let operated = ada.queue("positions").expect("a good name").workflow("b").expect("a good ID");
    operated.declare_void(5, 5).await.expect("it is missing");
    assert!(operated.resume().await.is_err(), "it is not held");
    operated.hold("for a while").await.expect("a queue");
    operated.resume().await.expect("it is held");
    let chain =
        client.create_queue("chain", QueueOptions::default().order(Order::After)).await.expect("a new queue");
    let first = Message::new("1").workflow("a").first().message_id("1");
    let follower =
        |n: u64| Message::new("x").workflow("a").after((n - 1).to_string()).message_id(n.to_string());
    let messages = [first, follower(2), follower(3), follower(7), follower(8)];
    chain.send_batch(messages).await.expect("accepted");
    chain.receive(Duration::ZERO).await.expect("a queue").expect("ready").complete().await.expect("held");
    let held = chain.receive(Duration::ZERO).await.expect("a queue").expect("ready");
    let topic = client.create_topic("topic").await.expect("a new topic");
    topic.subscribe("s", QueueOptions::default(), [Rule::everything()]).await.expect("a new subscription");
    // What is left of the window is filled with a queue of its own.
    let filler = client.create_queue("filler", QueueOptions::default()).await.expect("a new queue");
    for n in 0..40 {
        filler.send(Message::new(n.to_string())).await.expect("accepted");
    }
    engine.close().await;
    drop(held);
}
