//! Who looks takes nothing, and what is asked of a link is in force or refused.

use std::time::Duration;

use crate::amqp::MessageProperties;
use crate::amqp::Value;
use crate::amqp::lookup;
use crate::amqp::message::MessageHeader;
use crate::amqp::message::encode_application_properties;
use crate::amqp::message::encode_data;
use crate::amqp::message::encode_properties;
use crate::clock::Clock;
use crate::engine::Queue;
use crate::message::Message;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::refusal::condition;
use crate::service_bus::tests::source::Source;
use crate::service_bus::tests::wire::ATTACH;
use crate::service_bus::tests::wire::DISPOSITION;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::ReceivedFrame;

const FILTER: &str = "com.microsoft:session-filter";

fn plain() -> QueueOptions {
    QueueOptions { order: Order::None, ..QueueOptions::default() }
}

async fn fill(queue: &Queue, bodies: std::ops::Range<usize>) {
    for number in bodies {
        queue.send(Message::new(number.to_string()).workflow(format!("s{}", number % 2))).await.unwrap();
    }
}

fn bodies(messages: &[ReceivedFrame]) -> Vec<String> {
    messages.iter().map(ReceivedFrame::body).collect()
}

fn numbers(numbers: impl Iterator<Item = usize>) -> Vec<String> {
    numbers.map(|number| number.to_string()).collect()
}

/// The filter of an answer.
fn filter(attached: &ReceivedFrame, name: &str) -> Option<Value> {
    assert_eq!(attached.code, ATTACH);
    let source =
        attached.field(5).undescribed().as_list().expect("a link that is accepted has its source").to_vec();
    lookup(source.get(7).and_then(Value::as_map).unwrap_or_default(), name).cloned()
}

#[tokio::test]
async fn a_browser_is_shown_every_message_in_order_and_takes_none() {
    let host = Host::open().await;
    let queue = host.queue("q", plain()).await;
    fill(&queue, 0..400).await;
    let mut client = host.client().await;
    client.attach_receiver(0, Source::of("q").copy()).await;
    assert_eq!(bodies(&client.drained(0, 1_000).await), numbers(0..400));
    assert_eq!(queue.view().await.unwrap().counts.ready, 400);
    let taken = queue.receive_many(400, Duration::ZERO).await.unwrap();
    assert_eq!((taken.len(), taken[0].message().delivery_count), (400, 1), "looking is not counted");
    fill(&queue, 400..401).await;
    let more = client.drained(0, 1_000).await;
    assert_eq!(bodies(&more), ["400"], "it goes on from where it was");
}

#[tokio::test]
async fn a_browser_sees_what_is_locked_deferred_and_for_later() {
    let host = Host::open().await;
    let queue = host.queue("q", plain()).await;
    fill(&queue, 0..2).await;
    queue.receive(Duration::ZERO).await.unwrap().unwrap().defer().await.unwrap();
    let locked = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    let later = host.clock.now() + Duration::from_secs(60);
    queue.send(Message::new("2").schedule_at(later)).await.unwrap();
    let mut client = host.client().await;
    client.attach_receiver(0, Source::of("q").copy()).await;
    let seen = client.drained(0, 10).await;
    assert_eq!(bodies(&seen), numbers(0..3));
    let state = |frames: &ReceivedFrame| {
        let annotations = frames.message().message_annotations().unwrap();
        lookup(&annotations, "x-opt-message-state").cloned()
    };
    let states: Vec<_> = seen.iter().filter_map(state).collect();
    assert_eq!(states, [Value::Int(1), Value::Int(0), Value::Int(2)]);
    drop(locked);
}

#[tokio::test]
async fn a_session_is_looked_at_while_another_has_it() {
    let host = Host::open().await;
    let queue = host.queue("q", QueueOptions::default()).await;
    fill(&queue, 0..10).await;
    let holder = queue.accept_workflow("s1").await.unwrap();
    let peek_mode = ("com.microsoft:peek-mode", Value::Boolean(true));
    let mut client = host.client().await;
    for (handle, source) in [
        (0, Source::of("q").session("s1").copy()),
        (1, Source::of("q").session("s1").property(peek_mode.0, peek_mode.1)),
    ] {
        let attached = client.attach_receiver(handle, source).await;
        assert_eq!(filter(&attached, FILTER), Some(Value::from("s1")));
        assert_eq!(
            bodies(&client.drained(handle, 10).await),
            numbers((0..10).filter(|number| number % 2 == 1))
        );
    }
    drop(holder);
}

#[tokio::test]
async fn dead_letters_are_looked_at_and_stay() {
    let host = Host::open().await;
    let queue = host.queue("q", plain()).await;
    fill(&queue, 0..3).await;
    for mut delivery in queue.receive_many(2, Duration::ZERO).await.unwrap() {
        delivery.dead_letter("bad", "").await.unwrap();
    }
    let mut client = host.client().await;
    client.attach_receiver(0, Source::of("q/$deadletterqueue").copy()).await;
    assert_eq!(bodies(&client.drained(0, 10).await), numbers(0..2));
    assert_eq!(queue.view().await.unwrap().counts.dead_lettered, 2);
}

#[tokio::test]
async fn what_changes_which_messages_come_is_refused() {
    let host = Host::open().await;
    let queue = host.queue("q", plain()).await;
    fill(&queue, 0..1).await;
    let text = |descriptor: Value| Value::described(descriptor, Value::from("colour = 'blue'"));
    let selector = || text(Value::symbol("apache.org:selector-filter:string"));
    let mut client = host.client().await;
    let asked = [
        Source::of("q").filter("jms-selector", selector()),
        Source::of("q").filter("any", text(Value::Ulong(0x468c_0000_0004))),
        Source::of("q")
            .filter("no-local", Value::described(Value::Ulong(0x468c_0000_0003), Value::List(Vec::new()))),
        Source::of("q").durable().filter("jms-selector", selector()).copy(),
        Source::of("q").filter("selector", Value::from("colour = 'blue'")).copy(),
        Source::of("q").capability("topic"),
        Source::of("q").durable(),
        Source::of("q").durable().copy(),
    ];
    for (handle, source) in (0..).zip(asked) {
        let attached = client.attach_receiver(handle, source).await;
        let (condition, why) = client.refusal(&attached).await;
        assert_eq!(condition, condition::NOT_IMPLEMENTED);
        assert!(why.contains("implemented"), "{why}");
    }
    assert_eq!(queue.view().await.unwrap().counts.ready, 1);
}

/// A filter as clients of JMS write it.
fn selector(text: &str) -> Value {
    Value::described(Value::symbol("apache.org:selector-filter:string"), Value::from(text))
}

/// A message of a browser, with headers and a property.
fn coloured(number: u32, colour: &str) -> Vec<u8> {
    let mut out = bytes::BytesMut::new();
    let header = MessageHeader { priority: Some(9), durable: Some(true), ..MessageHeader::default() };
    header.encode(&mut out);
    let properties = MessageProperties {
        message_id: Value::from(format!("ID:{number}")),
        subject: Some("shirt".into()),
        ..MessageProperties::default()
    };
    encode_properties(&mut out, &properties);
    let application = [("colour", Value::from(colour)), ("size", Value::Int(number.cast_signed()))];
    encode_application_properties(&mut out, &application.map(|(name, value)| (Value::from(name), value)));
    encode_data(&mut out, number.to_string().as_bytes());
    out.to_vec()
}

#[tokio::test]
async fn a_browser_is_shown_what_its_selector_selects_and_nothing_is_taken() {
    let host = Host::open().await;
    let queue = host.queue("q", plain()).await;
    let mut client = host.client().await;
    client.attach_sender(0, vec![Value::from("q")]).await;
    for number in 0..600 {
        client.transfer(0, 0, &coloured(number, if number % 100 == 7 { "blue" } else { "red" })).await;
        while client.next_answer().await.code != DISPOSITION {}
    }
    let few = numbers([7, 107, 207, 307, 407, 507].into_iter());
    for (handle, (text, wanted)) in (1..).zip([
        ("colour = 'blue'", few.clone()),
        ("colour LIKE 'b%' AND size BETWEEN 100 AND 400", numbers([107, 207, 307].into_iter())),
        (
            "JMSPriority > 4 AND JMSDeliveryMode = 'PERSISTENT' AND JMSType = 'shirt' AND colour IN ('blue')",
            few,
        ),
        ("JMSMessageID = 'ID:599' AND JMSXDeliveryCount = 1 AND JMSCorrelationID IS NULL", numbers(599..600)),
        ("colour = 'green'", Vec::new()),
    ]) {
        let source = Source::of("q").filter("jms-selector", selector(text)).copy();
        let attached = client.attach_receiver(handle, source).await;
        let claims = filter(&attached, "jms-selector").expect("it is in force, so it is answered");
        assert_eq!(claims.undescribed(), &Value::from(text));
        assert_eq!(bodies(&client.drained(handle, 1_000).await), wanted, "{text}");
    }
    assert_eq!(queue.view().await.unwrap().counts.ready, 600);
}

#[tokio::test]
async fn a_wrong_selector_of_a_browser_is_refused_with_its_place() {
    let host = Host::open().await;
    host.queue("q", plain()).await;
    let mut client = host.client().await;
    let twice = Source::of("q").filter("a", selector("TRUE")).filter("b", selector("TRUE")).copy();
    for (handle, (source, why)) in (0..).zip([
        (Source::of("q").filter("jms-selector", selector("colour ~ 1")).copy(), "character 8"),
        (Source::of("q").filter("jms-selector", selector(&"(".repeat(5_000))).copy(), "bytes"),
        (twice, "several"),
    ]) {
        let attached = client.attach_receiver(handle, source).await;
        let (condition, described) = client.refusal(&attached).await;
        assert_eq!(condition, condition::INVALID_FIELD);
        assert!(described.contains(why), "{described}");
    }
}

#[tokio::test]
async fn what_only_decorates_a_link_is_left_out_of_the_answer() {
    let host = Host::open().await;
    host.queue("q", QueueOptions::default()).await;
    let mut client = host.client().await;
    let source = Source::of("q")
        .session("a")
        .filter("com.microsoft:session-filter-non-exclusive", Value::from("token"))
        .filter("colour", Value::described(Value::symbol("vendor:colour"), Value::from("blue")));
    let attached = client.attach_receiver(0, source).await;
    assert_eq!(filter(&attached, FILTER), Some(Value::from("a")));
    assert_eq!(filter(&attached, "colour"), None);
    assert_eq!(filter(&attached, "com.microsoft:session-filter-non-exclusive"), None);
}

#[tokio::test]
async fn who_asks_for_a_topic_gets_none_that_is_not_there_and_what_is_missing_is_told_as_its_sdk_expects() {
    let host = Host::open().await;
    host.queue("q", plain()).await;
    let mut client = host.client().await;
    let subscription = client.attach_receiver(0, Source::of("prices/Subscriptions/all")).await;
    let (condition, why) = client.refusal(&subscription).await;
    assert_eq!(condition, condition::NOT_FOUND);
    assert!(why.contains("prices/subscriptions/all"), "{why}");
    let capabilities = Value::Array(vec![Value::symbol("topic")]);
    let null = Value::Null;
    let target = [vec![Value::from("q")], vec![null; 5], vec![capabilities]].concat();
    let publisher = client.attach_sender(1, target).await;
    let (condition, why) = client.refusal(&publisher).await;
    assert_eq!(condition, condition::NOT_IMPLEMENTED);
    assert!(why.contains("topic"), "{why}");
    let missing = client.attach_receiver(2, Source::of("absent")).await;
    let (condition, why) = client.refusal(&missing).await;
    assert_eq!(condition, condition::NOT_FOUND);
    assert!(why.starts_with("The messaging entity") && why.contains("could not be found"), "{why}");
}
