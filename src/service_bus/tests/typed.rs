//! What a message says beside its body comes back as it was said.

use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::Value;
use crate::amqp::lookup;
use crate::amqp::message::MessageHeader;
use crate::amqp::message::Sections;
use crate::amqp::message::encode_application_properties;
use crate::amqp::message::encode_data;
use crate::amqp::message::encode_delivery_annotations;
use crate::engine::Queue;
use crate::engine::Topic;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::tests::source::Source;
use crate::service_bus::tests::wire::ACCEPTED;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::MODIFIED;
use crate::service_bus::tests::wire::REJECTED;
use crate::service_bus::tests::wire::ReceivedFrame;
use crate::service_bus::tests::wire::Wire;
use crate::service_bus::tests::wire::data;
use crate::service_bus::tests::wire::described;
use crate::service_bus::tests::wire::map;
use crate::topic::Filter;
use crate::topic::Rule;

/// Values as .NET says them in what it adds to a message.
fn claims() -> Vec<(Value, Value)> {
    let uri = Value::described(Value::symbol("com.microsoft:uri"), Value::from("http://example.org/"));
    let span = Value::described(Value::symbol("com.microsoft:timespan"), Value::Long(36_000_000_000));
    let ticks = Value::Long(621_355_968_010_000_000);
    let offset = Value::described(Value::symbol("com.microsoft:datetime-offset"), ticks);
    let twelve_and_a_half = [0x0c, 0x3e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 125];
    let values = [
        ("int", Value::Int(7)),
        ("short", Value::Short(-7)),
        ("uuid", Value::Uuid([9; 16])),
        ("time", Value::Timestamp(1_000)),
        ("float", Value::Float(0.5)),
        ("decimal", Value::Decimal(Bytes::copy_from_slice(&twelve_and_a_half))),
        ("small", Value::Decimal(Bytes::from_static(&[3; 16]))),
        ("uri", uri),
        ("span", span),
        ("offset", offset),
        ("text", Value::from("as it is")),
    ];
    values.into_iter().map(|(name, value)| (Value::from(name), value)).collect()
}

/// A client with a sender at handle 0 and a receiver at handle 1.
async fn client(host: &Host, options: QueueOptions) -> Wire {
    host.queue("q", QueueOptions { order: Order::None, ..options }).await;
    let mut client = host.client().await;
    client.attach_sender(0, vec![Value::from("q")]).await;
    client.attach_receiver(1, Source::of("q")).await;
    client
}

async fn send(client: &mut Wire, payload: &[u8]) {
    client.transfer(0, 0, payload).await;
    assert_eq!(client.another_answer().await.state(4), ACCEPTED);
}

fn property(message: &ReceivedFrame, name: &Value) -> Option<Value> {
    lookup(&message.message().application_properties().unwrap(), name.as_str().unwrap()).cloned()
}

fn check(message: &ReceivedFrame, added: &[(Value, Value)]) {
    for (name, value) in added {
        assert_eq!(property(message, name).as_ref(), Some(value), "{name:?}");
    }
}

#[tokio::test]
async fn what_a_settlement_adds_keeps_its_type() {
    let host = Host::open().await;
    let mut client = client(&host, QueueOptions::default()).await;
    send(&mut client, &data(b"x")).await;
    client.credit(1, 0, 10, false).await;
    client.another_answer().await;
    let state =
        |entries| described(MODIFIED, vec![Value::Boolean(true), Value::Boolean(false), Value::Map(entries)]);
    let not_a_number = (Value::from("nan"), Value::Float(f32::NAN));
    let added = [claims(), vec![not_a_number.clone()]].concat();
    assert_eq!(client.settle(0, state(added)).await.state(4), MODIFIED);
    let again = client.another_answer().await;
    check(&again, &claims());
    assert!(matches!(property(&again, &not_a_number.0), Some(Value::Float(n)) if n.is_nan()));
    // Another attempt changes one, and leaves the others as they are.
    let changed = (Value::from("uuid"), Value::Ushort(3));
    assert_eq!(client.settle(1, state(vec![changed.clone()])).await.state(4), MODIFIED);
    let third = client.another_answer().await;
    check(&third, &[changed]);
    check(
        &third,
        &claims().into_iter().filter(|(name, _)| name.as_str() != Some("uuid")).collect::<Vec<_>>(),
    );
}

#[tokio::test]
async fn what_a_dead_letter_is_given_keeps_its_type() {
    let host = Host::open().await;
    let mut client = client(&host, QueueOptions::default()).await;
    send(&mut client, &data(b"x")).await;
    client.credit(1, 0, 1, false).await;
    client.another_answer().await;
    let error = vec![Value::symbol("com.microsoft:dead-letter"), Value::Null, Value::Map(claims())];
    let rejected = described(REJECTED, vec![described(0x1d, error)]);
    assert_eq!(client.settle(0, rejected).await.state(4), REJECTED);
    client.attach_receiver(2, Source::of("q/$deadletterqueue")).await;
    client.credit(2, 0, 1, false).await;
    check(&client.another_answer().await, &claims());
}

#[tokio::test]
async fn header_delivery_annotations_and_footer_come_back_as_sent() {
    let host = Host::open().await;
    let mut client = client(&host, QueueOptions::default()).await;
    let header = MessageHeader {
        durable: Some(true),
        priority: Some(7),
        first_acquirer: Some(true),
        ..MessageHeader::default()
    };
    let mut payload = BytesMut::new();
    header.encode(&mut payload);
    encode_delivery_annotations(&mut payload, &[(Value::symbol("x-own"), Value::Int(1))]);
    encode_data(&mut payload, b"x");
    let footer = described(0x78, Vec::new());
    let footer = match footer {
        Value::Described(pair) => {
            Value::described(pair.0, Value::Map(vec![(Value::symbol("f"), Value::Int(2))]))
        }
        other => other,
    };
    footer.encode(&mut payload);
    let sent = Sections::parse(&payload.clone().freeze()).unwrap();
    send(&mut client, &payload).await;
    client.credit(1, 0, 1, false).await;
    let received = client.another_answer().await.message();
    let described = received.header().unwrap();
    assert_eq!(
        (described.durable, described.priority, described.first_acquirer),
        (Some(true), Some(7), Some(true))
    );
    assert_eq!(described.delivery_count, Some(0));
    let annotations = received.delivery_annotations().unwrap();
    assert_eq!(lookup(&annotations, "x-own"), Some(&Value::Int(1)));
    assert!(lookup(&annotations, "x-opt-lock-token").is_some());
    assert_eq!(received.footer, sent.footer);
}

#[tokio::test]
async fn a_time_to_live_longer_than_the_queues_is_told_as_the_queues() {
    let host = Host::open().await;
    let lives = std::time::Duration::from_secs(60);
    let mut client =
        client(&host, QueueOptions { time_to_live: Some(lives), ..QueueOptions::default() }).await;
    let mut payload = BytesMut::new();
    MessageHeader { ttl_ms: Some(3_600_000), ..MessageHeader::default() }.encode(&mut payload);
    encode_data(&mut payload, b"x");
    send(&mut client, &payload).await;
    client.credit(1, 0, 1, false).await;
    assert_eq!(client.another_answer().await.message().header().unwrap().ttl_ms, Some(60_000));
}

/// A message that says more beside its body.
fn with_properties(properties: &[(Value, Value)]) -> Bytes {
    let mut payload = BytesMut::new();
    encode_application_properties(&mut payload, properties);
    encode_data(&mut payload, b"x");
    payload.freeze()
}

async fn subscribe(topic: &Topic, name: &str, rule: Rule) -> Queue {
    let options = QueueOptions { order: Order::None, ..QueueOptions::default() };
    topic.subscribe(name, options, [rule]).await.unwrap()
}

async fn stored(queue: &Queue) -> u64 {
    queue.view().await.unwrap().counts.ready
}

/// What a client sends to the topic `t`.
async fn publish(host: &Host, properties: &[(Value, Value)]) {
    let mut client = host.client().await;
    client.attach_sender(0, vec![Value::from("t")]).await;
    send(&mut client, &with_properties(properties)).await;
}

#[tokio::test]
async fn a_filter_sees_every_value_and_it_comes_back_with_its_type() {
    let host = Host::open().await;
    let topic = host.engine.client().create_topic("t").await.unwrap();
    let filters = [
        ("int", "= 7"),
        ("short", "= -7"),
        ("uuid", "= '09090909-0909-0909-0909-090909090909'"),
        ("time", "= '1970-01-01T00:00:01.000Z'"),
        ("float", "= 0.5"),
        ("decimal", "> 12 AND [decimal] < 13"),
        ("small", "= 0"),
        ("uri", "LIKE 'http://%'"),
        ("span", "= 'PT1H'"),
        ("offset", "= '1970-01-01T00:00:01.000Z'"),
        ("text", "= 'as it is'"),
    ];
    let mut named: Vec<&str> = filters.iter().map(|(name, _)| *name).collect();
    let claims = claims();
    claims.iter().for_each(|(name, _)| named.retain(|known| Some(*known) != name.as_str()));
    assert!(named.is_empty() && filters.len() == claims.len(), "each has a filter");
    let mut queues = Vec::new();
    for (name, condition) in filters {
        let rule = Rule::new("one", Filter::sql(format!("[{name}] {condition}")));
        queues.push(subscribe(&topic, name, rule).await);
    }
    publish(&host, &claims).await;
    publish(&host, &[]).await;
    for queue in &queues {
        assert_eq!(stored(queue).await, 1, "{}", queue.name());
    }
    let mut client = host.client().await;
    client.attach_receiver(0, Source::of("t/subscriptions/decimal")).await;
    client.credit(0, 0, 1, false).await;
    check(&client.another_answer().await, &claims);
}

#[tokio::test]
async fn a_correlation_filter_asks_for_every_value_that_a_client_has_given_or_is_refused() {
    let host = Host::open().await;
    let topic = host.engine.client().create_topic("t").await.unwrap();
    let kind = || (Value::from("kind"), Value::from("order"));
    let description = |filter: &'static str, values: &'static str, more: (Value, Value)| {
        let values = (values, Value::Map(vec![kind(), more]));
        let expression = ("expression", Value::from("kind = @kind"));
        let description = map(vec![(filter, map(vec![expression, values]))]);
        map(vec![("rule-name", Value::from("new")), ("rule-description", description)])
    };
    let mut queues = Vec::new();
    for (name, value) in claims() {
        let subscription = name.as_str().unwrap().to_owned();
        queues.push(subscribe(&topic, &subscription, Rule::new("none", Filter::False)).await);
        let mut client = host.client().await;
        client.manage(&format!("t/subscriptions/{subscription}")).await;
        let asked = description("correlation-filter", "properties", (name, value));
        let added = client.ask("add-rule", &asked).await;
        assert_eq!(added.status, 200, "{subscription}: {added:?}");
    }
    publish(&host, &[kind()]).await;
    publish(&host, &[claims(), vec![kind()]].concat()).await;
    for queue in &queues {
        assert_eq!(stored(queue).await, 1, "{}", queue.name());
    }
    let mut client = host.client().await;
    client.manage("t/subscriptions/int").await;
    let unknown = Value::described(Value::symbol("com.microsoft:else"), Value::Long(1));
    for value in [Value::Null, Value::List(vec![Value::Long(1)]), unknown] {
        for (filter, values) in [("correlation-filter", "properties"), ("sql-filter", "parameters")] {
            let asked = description(filter, values, (Value::from("odd"), value.clone()));
            let refused = client.ask("add-rule", &asked).await;
            assert_eq!(refused.status, 400, "{filter} {value:?}: {refused:?}");
            assert!(refused.description.contains("\"odd\""), "{refused:?}");
        }
    }
}

#[tokio::test]
async fn an_action_removes_every_value_and_leaves_the_others_their_types() {
    let host = Host::open().await;
    let topic = host.engine.client().create_topic("t").await.unwrap();
    let action = "REMOVE [decimal]; REMOVE [nothing]; SET [span] = [span] + '!'";
    subscribe(&topic, "s", Rule::everything().action(action)).await;
    let nothing = (Value::from("nothing"), Value::Null);
    publish(&host, &[claims(), vec![nothing]].concat()).await;
    let mut client = host.client().await;
    client.attach_receiver(0, Source::of("t/subscriptions/s")).await;
    client.credit(0, 0, 1, false).await;
    let received = client.another_answer().await;
    for name in ["decimal", "nothing"] {
        assert_eq!(property(&received, &Value::from(name)), None, "{name}");
    }
    assert_eq!(property(&received, &Value::from("span")), Some(Value::from("PT1H!")));
    let mut others = claims();
    others.retain(|(name, _)| !matches!(name.as_str(), Some("decimal" | "span")));
    check(&received, &others);
}
