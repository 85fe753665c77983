//! Something of everything a file can hold.

use std::time::Duration;

use bytes::Bytes;
use seriatim::Abandon;
use seriatim::Actor;
use seriatim::Client;
use seriatim::Completion;
use seriatim::Message;
use seriatim::Order;
use seriatim::Queue;
use seriatim::QueueOptions;
use seriatim::SequenceNumber;
use seriatim::Timestamp;
use seriatim::id::IdempotencyKey;
use seriatim::queue::ExhaustedPolicy;
use seriatim::queue::ExpiryPolicy;
use seriatim::queue::GapAction;
use seriatim::queue::GapPolicy;
use seriatim::queue::LatePolicy;
use seriatim::testing::ManualClock;

/// When the story begins.
pub(crate) const BEGINNING: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// When it is over.
pub(crate) const END: Timestamp = Timestamp::from_millis(1_700_000_000_000 + 120_000);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Plays it.
pub(crate) async fn play(client: &Client, clock: &ManualClock) {
    let ada = Actor::new("ada").and_then(|ada| ada.because("a try")).expect("a good actor");
    let client = client.acting_as(ada);
    gone(&client).await;
    let arrival = arrival(&client, clock).await;
    positions(&client, clock).await;
    chains(&client, clock).await;
    alone(&client, clock).await;
    quarantined(&client).await;
    bulk(&client).await;
    clock.set(END);
    // Handed out when the story ends; given back by the next opening.
    send(&arrival, of("left", "one")).await;
    next(&arrival).await.keep();
}

async fn send(queue: &Queue, message: Message) -> SequenceNumber {
    let receipt = queue.send(message).await.expect("it is accepted");
    receipt.sequence_number().expect("it is stored")
}

async fn next(queue: &Queue) -> seriatim::Delivery {
    queue.receive(Duration::ZERO).await.expect("it is there").expect("a message is ready")
}

fn of(workflow: &str, body: &str) -> Message {
    Message::new(body.to_owned()).workflow(workflow)
}

/// A queue that is deleted: its rows in the journal outlive it.
async fn gone(client: &Client) {
    let queue = client.create_queue("gone", QueueOptions::default()).await.expect("it is new");
    send(&queue, of("w", "of no use")).await;
    client.delete_queue("gone").await.expect("it is there");
}

/// Order of arrival: states, retries, holds, what is set aside, scheduled, known, answered, expired.
async fn arrival(client: &Client, clock: &ManualClock) -> Queue {
    let options = QueueOptions::default()
        .lock(seconds(40))
        .delivery_count_max(2)
        .duplicate_window(seconds(3_600))
        .time_to_live(seconds(7_200))
        .forget_after(seconds(86_400));
    let queue = client.create_queue("arrival", options).await.expect("it is new");
    send(&queue, of("stateful", "one")).await;
    send(&queue, of("stateful", "two").subject("s").content_type("c").correlation_id("i").reply_to("r"))
        .await;
    let completion = Completion::new().state("half").send("arrival", of("stateful", "three"));
    next(&queue).await.complete_with(completion).await.expect("it is locked");
    let rich = of("retried", "one").property("text", "t").property("number", -3_i64).property("float", 0.5);
    send(&queue, rich.property("truth", true).message_id("r1")).await;
    send(&queue, of("retried", "two").message_id("r2")).await;
    next(&queue).await.release().await.expect("it is locked");
    queue
        .workflow("stateful")
        .expect("a good ID")
        .hold("until the story goes on")
        .await
        .expect("it can be held");
    next(&queue).await.abandon_after(seconds(1_000), "busy").await.expect("it is locked");
    send(&queue, of("exhausted", "one").message_id("e1")).await;
    send(&queue, of("exhausted", "two")).await;
    for attempt in 0..2 {
        clock.advance(seconds(1));
        let abandon = Abandon::now().reason(format!("broken {attempt}")).property("seen", true);
        next(&queue).await.abandon_with(abandon).await.expect("it is locked");
    }
    aside(&queue).await;
    let key = IdempotencyKey::of_request("k", b"pair").expect("a good key");
    let pair = [of("once", "one"), of("once", "two").message_id("r1")];
    queue.send_batch_once(key, pair).await.expect("it is accepted");
    send(&queue, of("expiring", "one").time_to_live(seconds(10))).await;
    clock.advance(seconds(11));
    next(&queue).await.dead_letter("no", "not wanted").await.expect("it is locked");
    queue
}

/// Messages that do not stand in the line.
async fn aside(queue: &Queue) {
    send(queue, of("deferred", "one")).await;
    send(queue, of("deferred", "two")).await;
    send(queue, of("deferred", "three")).await;
    next(queue).await.defer().await.expect("it is locked");
    next(queue)
        .await
        .defer_until(Timestamp::from_millis(END.as_millis() + 500_000))
        .await
        .expect("it is locked");
    let soon = Timestamp::from_millis(END.as_millis() + 60_000);
    send(queue, of("later", "one").schedule_at(soon)).await;
    let cancelled = send(queue, of("later", "two").schedule_at(soon)).await;
    queue.cancel(cancelled).await.expect("it is scheduled");
    send(queue, Message::new("without a workflow").schedule_at(soon)).await;
    let mut third = next(queue).await;
    third.complete().await.expect("it is locked");
}

/// Positions: gaps, marks of every kind, what came late, a workflow held for a gap.
async fn positions(client: &Client, clock: &ManualClock) {
    let options = QueueOptions::by_position()
        .late(LatePolicy::DeadLetter)
        .gap(GapPolicy { wait: seconds(30), then: GapAction::Hold })
        .expired(ExpiryPolicy::Drop)
        .hold_on_defer(true);
    let queue = client.create_queue("positions", options).await.expect("it is new");
    for position in [1, 2, 3, 6, 8, 20] {
        send(&queue, of("marked", "p").position(position)).await;
    }
    next(&queue).await.complete().await.expect("it is locked");
    next(&queue).await.dead_letter("no", "").await.expect("it is locked");
    next(&queue).await.complete().await.expect("it is locked");
    let marked = queue.workflow("marked").expect("a good ID");
    marked.declare_void(4, 5).await.expect("they are missing");
    next(&queue).await.complete().await.expect("it is locked");
    marked.skip_gap().await.expect("there is a gap");
    marked.set_state(Some(Bytes::from_static(b"mark"))).await.expect("a state");
    next(&queue).await.defer().await.expect("it is locked");
    send(&queue, of("gap", "p").position(3)).await;
    send(&queue, of("gap", "p").position(4)).await;
    send(&queue, of("kept", "p").position(1).schedule_at(Timestamp::from_millis(END.as_millis() + 1))).await;
    send(&queue, of("kept", "p").position(2)).await;
    send(&queue, of("redriven", "p").position(1)).await;
    next(&queue).await.dead_letter("later", "again").await.expect("it is locked");
    let dead = queue.dead_letters(None, 9).await.expect("it is there");
    let later = dead.iter().find(|dead| dead.dead_letter.reason == "later").expect("it is dead");
    queue.redrive_as(later.sequence_number, 2).await.expect("it has a place");
    clock.advance(seconds(31));
    send(&queue, of("waiting", "p").position(2)).await;
    let _ = queue.workflow("gap").expect("a good ID").retry_now().await;
}

/// After-order: a chain, its links, a branch whose root is unknown, one that a held predecessor stops.
async fn chains(client: &Client, clock: &ManualClock) {
    let gap = GapPolicy { wait: seconds(3_600), then: GapAction::Skip };
    let options = QueueOptions::default().order(Order::After).gap(gap).delivery_count_max(1);
    let queue = client.create_queue("chains", options).await.expect("it is new");
    send(&queue, of("chain", "a").message_id("a").first()).await;
    for (id, after) in [("c", "b"), ("b", "a"), ("d", "c"), ("z", "y"), ("y", "x")] {
        send(&queue, of("chain", id).message_id(id).after(after)).await;
    }
    next(&queue).await.complete().await.expect("it is locked");
    next(&queue).await.complete().await.expect("it is locked");
    send(&queue, of("stopped", "a").message_id("a").first()).await;
    send(&queue, of("stopped", "b").message_id("b").after("a")).await;
    let mut of_chain = next(&queue).await;
    next(&queue).await.abandon().await.expect("it is locked");
    of_chain.renew().await.expect("it is locked");
    of_chain.release().await.expect("it is locked");
    clock.advance(seconds(1));
}

/// No order, one attempt each, deleted when it is idle for long.
async fn alone(client: &Client, clock: &ManualClock) {
    let options =
        QueueOptions::default().order(Order::None).delivery_count_max(1).delete_when_idle(seconds(86_400));
    let queue = client.create_queue("alone", options).await.expect("it is new");
    for body in ["one", "two", "three"] {
        send(&queue, of("of no matter", body)).await;
    }
    next(&queue).await.abandon_after(seconds(5), "broken").await.expect("it is locked");
    next(&queue).await.complete().await.expect("it is locked");
    clock.advance(seconds(1));
}

/// A workflow behind a message that is exhausted goes to the dead letters.
async fn quarantined(client: &Client) {
    let exhausted = Some(ExhaustedPolicy::Quarantine);
    let options = QueueOptions::default().exhausted(exhausted).delivery_count_max(1);
    let queue = client.create_queue("quarantined", options).await.expect("it is new");
    for body in ["one", "two", "three"] {
        send(&queue, of("bad", body)).await;
    }
    send(&queue, of("good", "one")).await;
    next(&queue).await.abandon().await.expect("it is locked");
}

/// Enough to fill several generations of a small journal.
async fn bulk(client: &Client) {
    let queue = client.create_queue("bulk", QueueOptions::by_position()).await.expect("it is new");
    for position in 1..=60_u64 {
        send(&queue, of(&format!("w{}", position % 3), "b").position(position.div_ceil(3))).await;
    }
    for _ in 0..20 {
        next(&queue).await.complete().await.expect("it is locked");
    }
    queue.workflow("w1").expect("a good ID").purge().await.expect("it can be purged");
}
