//! Transactions: what belongs to one happens as one, or not at all.

use std::time::Duration;

use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::Value;
use crate::amqp::message::encode_value;
use crate::engine::Queue;
use crate::id::SequenceNumber;
use crate::limits;
use crate::message::Message;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::tests::bare::payload;
use crate::service_bus::tests::source::Source;
use crate::service_bus::tests::wire::ACCEPTED;
use crate::service_bus::tests::wire::ATTACH;
use crate::service_bus::tests::wire::DETACH;
use crate::service_bus::tests::wire::DISPOSITION;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::NONE;
use crate::service_bus::tests::wire::REJECTED;
use crate::service_bus::tests::wire::Wire;
use crate::service_bus::tests::wire::data;
use crate::service_bus::tests::wire::described;
use crate::service_bus::tests::wire::map;
use crate::topic::Rule;

const TIMEOUT: Duration = Duration::from_secs(20);
const UNKNOWN: &str = "amqp:transaction:unknown-id";
pub(super) const ROLLED_BACK: &str = "amqp:transaction:rollback";
const MODIFIED: u64 = 0x27;
const DECLARED: u64 = 0x33;
const IN_TRANSACTION: u64 = 0x34;

/// The handles of links in these tests.
const COORDINATOR: u32 = 7;
pub(super) const SENDER: u32 = 1;
const RECEIVER: u32 = 2;

/// A state that holds only if a transaction does.
fn transactional(outcome: Value) -> Value {
    in_transaction(&Bytes::from_static(b"never declared"), outcome)
}

pub(super) fn in_transaction(transaction: &Bytes, outcome: Value) -> Value {
    described(IN_TRANSACTION, vec![Value::Binary(transaction.clone()), outcome])
}

pub(super) fn accepted() -> Value {
    described(ACCEPTED, Vec::new())
}

/// A client with a coordinator, a sender to `to` and a receiver of `from`.
pub(super) struct Transacting {
    pub(super) client: Wire,
}

impl Transacting {
    async fn new(host: &Host, to: &str, from: Source) -> Transacting {
        let mut client = host.client().await;
        client.attach_coordinator(COORDINATOR).await;
        client.attach_sender(SENDER, vec![Value::from(to)]).await;
        client.attach_receiver(RECEIVER, from).await;
        Transacting { client }
    }

    /// One that has received `x`, the only message of the queue `q`, and has begun a transaction.
    pub(super) async fn holding_one(host: &Host, to: &str) -> (Queue, Transacting, Bytes) {
        let queue = host.engine.client().queue("q").unwrap();
        queue.send(Message::new("x")).await.unwrap();
        let mut client = Transacting::new(host, to, Source::of("q")).await;
        assert_eq!(client.receive(1).await, ["x"]);
        let transaction = client.declare().await;
        (queue, client, transaction)
    }

    async fn declare(&mut self) -> Bytes {
        let answer = self.ask(described(0x31, Vec::new())).await;
        assert_eq!(answer.state(4), DECLARED);
        match answer.field(4).undescribed().as_list().unwrap() {
            [Value::Binary(transaction)] => transaction.clone(),
            other => panic!("{other:?} names no transaction"),
        }
    }

    /// The kind of the answer to the end of a transaction, and its error.
    pub(super) async fn discharge(&mut self, transaction: &Bytes, fails: bool) -> (u64, String) {
        let fields = vec![Value::Binary(transaction.clone()), Value::Boolean(fails)];
        let answer = self.ask(described(0x32, fields)).await;
        let error = if answer.state(4) == REJECTED { answer.error(4).0 } else { String::new() };
        (answer.state(4), error)
    }

    async fn ask(&mut self, request: Value) -> crate::service_bus::tests::wire::ReceivedFrame {
        let mut payload = BytesMut::new();
        encode_value(&mut payload, &request);
        self.client.transfer(COORDINATOR, 0, &payload).await;
        self.answer().await
    }

    /// The next disposition.
    async fn answer(&mut self) -> crate::service_bus::tests::wire::ReceivedFrame {
        loop {
            let answer = self.client.another_answer().await;
            if answer.code == DISPOSITION {
                return answer;
            }
        }
    }

    pub(super) async fn send(&mut self, transaction: &Bytes, body: &[u8]) {
        self.client.transfer_in(SENDER, in_transaction(transaction, NONE), &data(body)).await;
        assert_eq!(self.answer().await.state(4), IN_TRANSACTION);
    }

    async fn receive(&mut self, count: u32) -> Vec<String> {
        self.client.credit(RECEIVER, 0, count, false).await;
        let mut bodies = Vec::new();
        for _ in 0..count {
            bodies.push(self.client.another_answer().await.body());
        }
        bodies
    }

    async fn complete(&mut self, transaction: &Bytes, number: u32) {
        let answer = self.client.settle(number, in_transaction(transaction, accepted())).await;
        assert_eq!(answer.state(4), IN_TRANSACTION);
    }
}

pub(super) async fn stored(queue: &Queue) -> (u64, u64, u64) {
    let counts = queue.view().await.unwrap().counts;
    (counts.ready, counts.locked, counts.completed)
}

pub(super) fn unordered() -> QueueOptions {
    QueueOptions { order: Order::None, ..QueueOptions::default() }
}

#[tokio::test]
async fn what_is_committed_happens_at_once_and_not_before() {
    let host = host_with_queue().await;
    let to = host.queue("to", unordered()).await;
    let (from, mut client, transaction) = Transacting::holding_one(&host, "to").await;
    client.send(&transaction, b"y").await;
    client.complete(&transaction, 0).await;
    assert_eq!((stored(&from).await, stored(&to).await), ((0, 1, 0), (0, 0, 0)), "nothing has happened");
    assert_eq!(client.discharge(&transaction, false).await.0, ACCEPTED);
    assert_eq!((stored(&from).await, stored(&to).await), ((0, 0, 1), (1, 0, 0)));
    assert_eq!(client.discharge(&transaction, false).await, (REJECTED, UNKNOWN.to_owned()), "it has ended");
}

#[tokio::test]
async fn what_is_rolled_back_never_happens_and_what_was_held_is_held() {
    let host = host_with_queue().await;
    let (queue, mut client, transaction) = Transacting::holding_one(&host, "q").await;
    client.send(&transaction, b"y").await;
    client.complete(&transaction, 0).await;
    assert_eq!(client.discharge(&transaction, true).await.0, ACCEPTED);
    assert_eq!(stored(&queue).await, (0, 1, 0));
    host.clock.advance(Duration::from_secs(60));
    let again = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    assert_eq!((&again.message().body[..], again.message().delivery_count), (&b"x"[..], 2));
}

#[tokio::test]
async fn a_transaction_of_which_a_part_is_refused_does_nothing() {
    let host = host_with_queue().await;
    let to = host.queue("to", unordered().messages_max(1)).await;
    let (queue, mut client, transaction) = Transacting::holding_one(&host, "to").await;
    client.complete(&transaction, 0).await;
    for _ in 0..3 {
        client.send(&transaction, b"y").await;
    }
    assert_eq!(client.discharge(&transaction, false).await, (REJECTED, ROLLED_BACK.to_owned()));
    assert_eq!((stored(&queue).await, stored(&to).await), ((0, 1, 0), (0, 0, 0)), "to has room for one");
    // What was tried in vain can be done later, although it was answered once.
    host.clock.advance(Duration::from_secs(60));
    assert!(queue.receive(Duration::ZERO).await.unwrap().is_some(), "it was not completed");
}

#[tokio::test]
async fn a_settlement_after_the_lock_was_lost_takes_the_whole_transaction_with_it() {
    let host = host_with_queue().await;
    let to = host.queue("to", unordered()).await;
    let (queue, mut client, transaction) = Transacting::holding_one(&host, "to").await;
    client.send(&transaction, b"y").await;
    client.complete(&transaction, 0).await;
    host.clock.advance(Duration::from_secs(61));
    assert_eq!(client.discharge(&transaction, false).await, (REJECTED, ROLLED_BACK.to_owned()));
    assert_eq!((stored(&queue).await, stored(&to).await), ((1, 0, 0), (0, 0, 0)));
}

#[tokio::test]
async fn a_hundred_sends_and_completions_are_one_commit() {
    let host = host_with_queue().await;
    let (queue, to) = (host.engine.client().queue("q").unwrap(), host.queue("to", unordered()).await);
    queue.send_batch((0..100).map(|number| Message::new(format!("{number}")))).await.unwrap();
    let mut client = Transacting::new(&host, "to", Source::of("q")).await;
    client.receive(100).await;
    let transaction = client.declare().await;
    for number in 0..100 {
        client.send(&transaction, b"y").await;
        client.complete(&transaction, number).await;
    }
    let before = host.engine.client().commit_stats().commits;
    assert_eq!(client.discharge(&transaction, false).await.0, ACCEPTED);
    assert_eq!(host.engine.client().commit_stats().commits - before, 1);
    assert_eq!((stored(&queue).await, stored(&to).await), ((0, 0, 100), (100, 0, 0)));
}

#[tokio::test]
async fn a_sender_whose_queue_has_another_order_ends_when_its_transaction_is_rolled_back() {
    let host = host_with_queue().await;
    let mut transacting = Transacting::new(&host, "q", Source::of("q")).await;
    let transaction = transacting.declare().await;
    let placeless = payload("x", Some("w"));
    transacting.client.transfer_in(SENDER, in_transaction(&transaction, NONE), &placeless).await;
    assert_eq!(transacting.answer().await.state(4), IN_TRANSACTION);
    host.engine.client().change_queue("q", QueueOptions::by_position()).await.unwrap();
    assert_eq!(transacting.discharge(&transaction, false).await, (REJECTED, ROLLED_BACK.to_owned()));
    let ended = transacting.client.another_answer().await;
    assert_eq!((ended.code, ended.error(2).0.as_str()), (DETACH, "amqp:link:detach-forced"));
}

#[tokio::test]
async fn settlements_of_a_transaction_count_against_its_bytes() {
    const BYTES: usize = 60_000;
    let host = host_with_queue().await;
    let queue = host.engine.client().queue("q").unwrap();
    let fitting = u32::try_from(limits::SERVICE_BUS_SENDING_BYTES / BYTES).unwrap();
    for _ in 0..=fitting {
        queue.send(Message::new("x")).await.unwrap();
    }
    let mut transacting = Transacting::new(&host, "q", Source::of("q")).await;
    transacting.receive(fitting + 1).await;
    let transaction = transacting.declare().await;
    let set = map(vec![("a", Value::Binary(vec![0; BYTES].into()))]);
    let abandoned = described(MODIFIED, vec![Value::Boolean(true), Value::Boolean(false), set]);
    for number in 0..=fitting {
        let state = in_transaction(&transaction, abandoned.clone());
        let answer = transacting.client.settle(number, state).await;
        match number < fitting {
            true => assert_eq!(answer.state(4), IN_TRANSACTION),
            false => assert_eq!(answer.error(4).0, "amqp:resource-limit-exceeded"),
        }
    }
}

#[tokio::test]
async fn a_session_is_completed_in_order_and_passed_on_with_one_transaction() {
    let (host, queue, to) = host_with_session().await;
    let mut client = Transacting::new(&host, "to", Source::of("q").session("s")).await;
    assert_eq!(client.receive(2).await, ["0", "1"]);
    let transaction = client.declare().await;
    for (number, body) in [(0, b"0"), (1, b"1")] {
        client.complete(&transaction, number).await;
        client.send(&transaction, body).await;
    }
    assert_eq!(client.discharge(&transaction, false).await.0, ACCEPTED);
    assert_eq!((stored(&queue).await.2, stored(&to).await.0), (2, 2));
}

#[tokio::test]
async fn who_leaves_without_a_word_before_a_commit_has_failed_the_first_message_of_the_session() {
    let host = Host::open().await;
    let (queue, _to) = (host.queue("q", QueueOptions::default()).await, host.queue("to", unordered()).await);
    queue.send_batch(["0", "1"].map(|body| Message::new(body).workflow("s"))).await.unwrap();
    for (first, is_rolled_back) in [((1, 1), false), ((2, 2), true)] {
        let mut client = Transacting::new(&host, "to", Source::of("q").session("s")).await;
        assert_eq!(client.receive(2).await, ["0", "1"]);
        let transaction = client.declare().await;
        client.complete(&transaction, 0).await;
        if is_rolled_back {
            assert_eq!(client.discharge(&transaction, true).await.0, ACCEPTED);
        }
        drop(client);
        until_free(&queue).await;
        let views = queue.peek(SequenceNumber::new(0), 2).await.unwrap();
        let counts: Vec<_> = views.iter().map(|view| (view.delivery_count, view.attempts.len())).collect();
        assert_eq!(counts, [first, (0, 0)]);
    }
}

#[tokio::test]
async fn what_came_again_after_a_rollback_is_not_taken_for_what_its_client_has_not_settled() {
    let (host, queue, _to) = host_with_session().await;
    let mut client = Transacting::new(&host, "to", Source::of("q").session("s")).await;
    assert_eq!(client.receive(2).await, ["0", "1"]);
    let transaction = client.declare().await;
    client.complete(&transaction, 1).await;
    assert_eq!(client.discharge(&transaction, true).await.0, ACCEPTED);
    let abandoned = described(MODIFIED, vec![Value::Boolean(true)]);
    assert_eq!(client.client.settle(0, abandoned).await.state(4), MODIFIED);
    client.client.credit(RECEIVER, 2, 3, false).await;
    for body in ["0", "1", "2"] {
        assert_eq!(client.client.another_answer().await.body(), body);
    }
    for again in [2, 3] {
        assert_eq!(client.client.settle(again, accepted()).await.state(4), ACCEPTED);
    }
    drop(client);
    until_free(&queue).await;
    let views = queue.peek(SequenceNumber::new(0), 1).await.unwrap();
    assert_eq!((views[0].delivery_count, views[0].attempts.len()), (1, 1));
}

/// Waits until all of the session was given back.
async fn until_free(queue: &Queue) {
    let free = async {
        while queue.accept_workflow("s").await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, free).await.expect("its client is gone");
}

#[tokio::test]
async fn a_topic_and_a_queue_hear_of_a_transaction_together() {
    let host = host_with_queue().await;
    let queue = host.engine.client().queue("q").unwrap();
    let topic = host.engine.client().create_topic("t").await.unwrap();
    let subscriptions = [
        topic.subscribe("a", unordered(), [Rule::everything()]).await.unwrap(),
        topic.subscribe("b", unordered(), [Rule::everything()]).await.unwrap(),
    ];
    let mut client = Transacting::new(&host, "t", Source::of("q")).await;
    client.client.attach_sender(3, vec![Value::from("q")]).await;
    let transaction = client.declare().await;
    client.send(&transaction, b"y").await;
    client.client.transfer_in(3, in_transaction(&transaction, NONE), &data(b"z")).await;
    assert_eq!(client.answer().await.state(4), IN_TRANSACTION);
    // The rules are those that hold when it happens.
    topic.set_rules("b", []).await.unwrap();
    assert_eq!(client.discharge(&transaction, false).await.0, ACCEPTED);
    assert_eq!((stored(&subscriptions[0]).await.0, stored(&queue).await.0), (1, 1));
    assert_eq!(stored(&subscriptions[1]).await.0, 0);
}

#[tokio::test]
async fn a_dead_letter_is_sent_again_with_one_transaction() {
    let host = host_with_queue().await;
    let queue = host.engine.client().queue("q").unwrap();
    queue.send(Message::new("x")).await.unwrap();
    queue.receive(Duration::ZERO).await.unwrap().unwrap().dead_letter("bad", "").await.unwrap();
    let mut client = Transacting::new(&host, "q", Source::of("q/$deadletterqueue")).await;
    client.receive(1).await;
    let transaction = client.declare().await;
    client.send(&transaction, b"x").await;
    client.complete(&transaction, 0).await;
    assert_eq!(queue.view().await.unwrap().counts.dead_lettered, 1);
    assert_eq!(client.discharge(&transaction, false).await.0, ACCEPTED);
    let counts = queue.view().await.unwrap().counts;
    assert_eq!((counts.dead_lettered, counts.ready), (0, 1));
}

#[tokio::test]
async fn a_transaction_that_is_open_for_two_minutes_is_rolled_back() {
    let host = host_with_queue().await;
    let queue = host.engine.client().queue("q").unwrap();
    let mut client = Transacting::new(&host, "q", Source::of("q")).await;
    let transaction = client.declare().await;
    client.send(&transaction, b"x").await;
    host.clock.advance(Duration::from_secs(120));
    let timed_out = (REJECTED, "amqp:transaction:timeout".to_owned());
    assert_eq!(client.discharge(&transaction, false).await, timed_out);
    assert_eq!(stored(&queue).await, (0, 0, 0));
}

#[tokio::test]
async fn who_ends_the_coordinator_rolls_back_what_it_has_declared() {
    let host = host_with_queue().await;
    let queue = host.engine.client().queue("q").unwrap();
    let mut client = Transacting::new(&host, "q", Source::of("q")).await;
    let transaction = client.declare().await;
    client.send(&transaction, b"x").await;
    client.client.detach(COORDINATOR).await;
    client.client.attach_coordinator(COORDINATOR).await;
    assert_eq!(client.discharge(&transaction, false).await, (REJECTED, UNKNOWN.to_owned()));
    assert_eq!(stored(&queue).await, (0, 0, 0));
}

#[tokio::test]
async fn a_connection_has_a_limited_number_of_open_transactions() {
    let host = host_with_queue().await;
    let mut client = Transacting::new(&host, "q", Source::of("q")).await;
    for _ in 0..crate::limits::SERVICE_BUS_TRANSACTIONS_MAX {
        client.declare().await;
    }
    let refused = client.ask(described(0x31, Vec::new())).await;
    assert_eq!(refused.error(4).0, "amqp:resource-limit-exceeded");
    host.clock.advance(Duration::from_secs(120));
    client.declare().await;
}

#[tokio::test]
async fn a_coordinator_that_is_asked_nonsense_says_so() {
    let host = host_with_queue().await;
    let mut client = Transacting::new(&host, "q", Source::of("q")).await;
    for nonsense in [NONE, described(0x32, Vec::new()), described(0x30, Vec::new()), Value::from("declare")] {
        let refused = client.ask(nonsense).await;
        assert_eq!((refused.state(4), refused.error(4).0), (REJECTED, "amqp:invalid-field".to_owned()));
    }
}

#[tokio::test]
async fn the_management_is_asked_nothing_with_a_transaction() {
    let host = host_with_queue().await;
    let mut client = Transacting::new(&host, "q", Source::of("q")).await;
    client.client.attach_sender(3, vec![Value::from("q/$management")]).await;
    let transaction = client.declare().await;
    client.client.transfer_in(3, in_transaction(&transaction, NONE), &data(b"x")).await;
    let refused = client.answer().await;
    assert_eq!((refused.state(4), refused.error(4).0), (REJECTED, "amqp:not-implemented".to_owned()));
}

#[tokio::test]
async fn what_is_sent_by_way_of_another_entity_arrives() {
    let host = host_with_queue().await;
    let to = host.queue("to", unordered()).await;
    let mut client = host.client().await;
    assert_eq!(client.attach_sender_by_way(0, "q", "to").await.code, ATTACH);
    client.transfer(0, 0, &data(b"x")).await;
    assert_eq!(client.another_answer().await.state(4), ACCEPTED);
    assert_eq!(stored(&to).await.0, 1);
}

/// A host, a queue with three messages of a session, and another queue.
async fn host_with_session() -> (Host, Queue, Queue) {
    let host = Host::open().await;
    let (queue, to) = (host.queue("q", QueueOptions::default()).await, host.queue("to", unordered()).await);
    queue.send_batch(["0", "1", "2"].map(|body| Message::new(body).workflow("s"))).await.unwrap();
    (host, queue, to)
}

pub(super) async fn host_with_queue() -> Host {
    let host = Host::open().await;
    host.queue("q", unordered()).await;
    host
}

#[tokio::test]
async fn a_message_in_a_transaction_nobody_declared_is_refused_and_the_link_goes_on() {
    let host = host_with_queue().await;
    let queue = host.engine.client().queue("q").unwrap();
    let mut client = host.client().await;
    client.attach_sender(0, vec![Value::from("q")]).await;
    client.transfer_in(0, transactional(Value::Null), &data(b"x")).await;
    let answer = client.another_answer().await;
    assert_eq!((answer.code, answer.state(4)), (DISPOSITION, REJECTED));
    assert_eq!(answer.error(4).0, UNKNOWN);
    assert_eq!(queue.view().await.unwrap().counts.stored(), 0);
    client.transfer(0, 0, &data(b"y")).await;
    assert_eq!(client.another_answer().await.state(4), ACCEPTED);
    assert_eq!(queue.view().await.unwrap().counts.ready, 1);
}

#[tokio::test]
async fn a_settlement_in_a_transaction_nobody_declared_is_refused_and_settles_nothing() {
    let host = host_with_queue().await;
    let queue = host.engine.client().queue("q").unwrap();
    for body in ["0", "1"] {
        queue.send(Message::new(body)).await.unwrap();
    }
    let mut client = host.client().await;
    client.attach_receiver(0, Source::of("q")).await;
    client.credit(0, 0, 2, false).await;
    assert_eq!(
        (client.another_answer().await.body(), client.another_answer().await.body()),
        ("0".into(), "1".into())
    );
    let answer = client.settle(0, transactional(accepted())).await;
    assert_eq!((answer.state(4), answer.error(4).0), (REJECTED, UNKNOWN.to_owned()));
    assert_eq!(client.settle(1, accepted()).await.state(4), ACCEPTED, "the link goes on");
    assert_eq!(queue.view().await.unwrap().counts.locked, 1, "it is still the client's");
    assert!(queue.receive(Duration::ZERO).await.unwrap().is_none());
}

#[tokio::test]
async fn who_settles_at_once_in_such_a_transaction_hears_it_by_the_end_of_the_link() {
    let host = host_with_queue().await;
    let queue = host.engine.client().queue("q").unwrap();
    queue.send(Message::new("0")).await.unwrap();
    let mut client = host.client().await;
    client.attach_receiver(0, Source::of("q")).await;
    client.credit(0, 0, 1, false).await;
    client.another_answer().await;
    let settled = Value::Boolean(true);
    let fields = vec![settled.clone(), Value::Uint(0), Value::Uint(0), settled, transactional(accepted())];
    client.say(DISPOSITION, fields).await;
    let ended = client.another_answer().await;
    assert_eq!((ended.code, ended.error(2).0), (DETACH, UNKNOWN.to_owned()));
    assert_eq!(queue.view().await.unwrap().counts.locked, 1);
    client.attach_receiver(1, Source::of("q")).await;
}
