//! Entities that forward: everything goes on once, in order, with what it said.

use std::time::Duration;

use super::source::Source;
use super::wire::Host;
use crate::amqp::Value;
use crate::amqp::lookup;
use crate::clock::Clock;
use crate::engine::Client;
use crate::engine::DeadLetterView;
use crate::engine::Engine;
use crate::engine::Events;
use crate::engine::Queue;
use crate::header::PropertyValue;
use crate::limits;
use crate::message::Message;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::config_properties::service_bus_options;
use crate::service_bus::description::Description;
use crate::service_bus::description::Descriptions;
use crate::service_bus::endpoint::EndpointOptions;
use crate::testing::ManualClock;
use crate::topic::Filter;
use crate::topic::Rule;

const TIMEOUT: Duration = Duration::from_secs(30);

/// An engine in memory with queues that are given by name, and of which something is said.
async fn engine_with(entities: &[(&str, Description)]) -> (Engine, ManualClock) {
    let (engine, clock) = crate::testing::engine().await.unwrap();
    let descriptions = Descriptions::new(engine.client().clone(), false);
    descriptions.open().await.unwrap();
    for (name, fields) in entities {
        let options = QueueOptions { order: Order::Arrival, ..service_bus_options(false) };
        let queue = engine.client().create_queue(name, options).await.unwrap();
        let of = Some(queue.view().await.unwrap().created_at);
        descriptions.describe(queue.name(), &Description { of, ..fields.clone() }).await.unwrap();
    }
    (engine, clock)
}

async fn host(engine: Engine, clock: ManualClock) -> Host {
    Host::with(engine, clock, EndpointOptions::new("127.0.0.1:0".parse().unwrap())).await
}

fn to(target: &str) -> Description {
    Description { forward_to: Some(target.to_owned()), ..Description::default() }
}

fn dead_letters_to(target: &str) -> Description {
    Description { forward_dead_letters_to: Some(target.to_owned()), ..Description::default() }
}

fn nothing() -> Description {
    Description::default()
}

fn queue(client: &Client, name: &str) -> Queue {
    client.queue(name).unwrap()
}

async fn bodies(queue: &Queue, count: usize) -> Vec<String> {
    let mut bodies = Vec::new();
    while bodies.len() < count {
        // Whoever moves the clock may have moved it by more than this while nobody could hear of it.
        let Some(mut delivery) = queue.receive(TIMEOUT).await.unwrap() else { continue };
        bodies.push(String::from_utf8(delivery.message().body.to_vec()).unwrap());
        delivery.complete().await.unwrap();
    }
    bodies
}

#[tokio::test]
async fn what_waits_and_what_comes_goes_on_once_and_each_workflow_in_order() {
    let (engine, clock) = engine_with(&[("from", to("to")), ("to", nothing())]).await;
    let client = engine.client().clone();
    let (from, target) = (queue(&client, "from"), queue(&client, "to"));
    for number in 0..30 {
        let message = Message::new(format!("{number}")).workflow(format!("w{}", number % 3));
        from.send(message.property("number", i64::from(number)).message_id(format!("m{number}")))
            .await
            .unwrap();
    }
    let _host = host(engine, clock).await;
    for number in 30..40 {
        from.send(Message::new(format!("{number}")).workflow("w0")).await.unwrap();
    }
    let mut by_workflow: std::collections::BTreeMap<String, Vec<u32>> = Default::default();
    for _ in 0..40 {
        let mut delivery = target.receive(TIMEOUT).await.unwrap().expect("it goes on");
        let message = delivery.message();
        let number: u32 = std::str::from_utf8(&message.body).unwrap().parse().unwrap();
        if number < 30 {
            assert_eq!(message.headers.properties["number"], PropertyValue::Integer(i64::from(number)));
            assert_eq!(message.message_id.as_ref().unwrap().as_str(), format!("m{number}"));
        }
        assert_eq!(message.delivery_count, 1);
        by_workflow.entry(message.workflow_id.as_ref().unwrap().to_string()).or_default().push(number);
        delivery.complete().await.unwrap();
    }
    assert!(by_workflow.values().all(|numbers| numbers.is_sorted()), "{by_workflow:?}");
    assert_eq!(by_workflow.values().map(Vec::len).sum::<usize>(), 40);
    assert_eq!(target.view().await.unwrap().counts.stored(), 0);
    assert_eq!(from.view().await.unwrap().counts.stored(), 0);
}

#[tokio::test]
async fn a_message_that_goes_on_lives_no_longer_however_long_nothing_came_before_it() {
    const LIVES: Duration = Duration::from_secs(3_600);
    let (engine, clock) = engine_with(&[("from", to("to")), ("to", nothing())]).await;
    let (from, target) = (queue(engine.client(), "from"), queue(engine.client(), "to"));
    let _host = host(engine, clock.clone()).await;
    for _ in 0..5 {
        let expires_at = clock.now() + LIVES;
        from.send(Message::new("x").time_to_live(LIVES)).await.unwrap();
        let mut delivery = target.receive(TIMEOUT).await.unwrap().expect("it goes on");
        assert_eq!(delivery.message().expires_at, Some(expires_at));
        delivery.complete().await.unwrap();
        // As good as always it waits for the next by then.
        for _ in 0..20 {
            assert_eq!(from.view().await.unwrap().counts.stored(), 0);
        }
        clock.advance(Duration::from_secs(20));
    }
}

#[tokio::test]
async fn a_step_of_the_wall_clock_takes_nothing_from_the_time_of_a_message_that_goes_on() {
    const LIVES: Duration = Duration::from_secs(3_600);
    let (engine, clock) = engine_with(&[("from", to("to")), ("to", nothing())]).await;
    let (from, target) = (queue(engine.client(), "from"), queue(engine.client(), "to"));
    let expires_at = clock.now() + LIVES;
    clock.step(clock.now() + LIVES * 24);
    from.send(Message::new("x").time_to_live(LIVES)).await.unwrap();
    let _host = host(engine, clock).await;
    let delivery = target.receive(TIMEOUT).await.unwrap().expect("it goes on");
    assert_eq!(delivery.message().expires_at, Some(expires_at));
}

/// The first dead letter of a queue, once there is one.
async fn first_dead_letter(queue: &Queue, events: &mut Events) -> DeadLetterView {
    loop {
        let found = queue.dead_letters(None, 10).await.unwrap();
        if let Some(dead) = found.into_iter().next() {
            return dead;
        }
        let _ = events.next().await.unwrap();
    }
}

#[tokio::test]
async fn a_circle_ends_with_a_dead_letter_after_four_times() {
    let (engine, clock) = engine_with(&[("a", to("b")), ("b", to("a"))]).await;
    let client = engine.client().clone();
    let mut events = client.events();
    let _host = host(engine, clock).await;
    let (a, b) = (queue(&client, "a"), queue(&client, "b"));
    a.send(Message::new("round")).await.unwrap();
    let dead = first_dead_letter(&a, &mut events).await;
    assert_eq!(dead.dead_letter.reason, "MaxTransferHopCountExceeded");
    assert_eq!(b.view().await.unwrap().counts.stored(), 0);
    assert_eq!(a.view().await.unwrap().counts.stored(), 1);
}

#[tokio::test]
async fn what_forwards_to_itself_ends_with_a_dead_letter_after_four_times() {
    let (engine, clock) = engine_with(&[("a", to("a"))]).await;
    let client = engine.client().clone();
    let mut events = client.events();
    let _host = host(engine, clock).await;
    let a = queue(&client, "a");
    a.send(Message::new("round").workflow("w")).await.unwrap();
    let dead = first_dead_letter(&a, &mut events).await;
    assert_eq!(dead.dead_letter.reason, "MaxTransferHopCountExceeded");
    assert_eq!(a.view().await.unwrap().counts.stored(), 1);
}

#[tokio::test]
async fn dead_letters_go_on_and_say_why_they_are_dead() {
    let (engine, clock) = engine_with(&[("from", dead_letters_to("graves")), ("graves", nothing())]).await;
    let client = engine.client().clone();
    let from = queue(&client, "from");
    for reason in ["first", "second"] {
        from.send(Message::new(reason).workflow("w").property("p", 1_i64)).await.unwrap();
        let mut delivery = from.receive(TIMEOUT).await.unwrap().unwrap();
        delivery.dead_letter(reason, "because").await.unwrap();
    }
    let _host = host(engine, clock).await;
    let graves = queue(&client, "graves");
    for reason in ["first", "second"] {
        let mut delivery = graves.receive(TIMEOUT).await.unwrap().unwrap();
        let properties = &delivery.message().headers.properties;
        assert_eq!(properties["DeadLetterReason"], PropertyValue::from(reason));
        assert_eq!(properties["DeadLetterErrorDescription"], PropertyValue::from("because"));
        assert_eq!(properties["p"], PropertyValue::Integer(1));
        assert_eq!(delivery.message().workflow_id.as_ref().unwrap().as_str(), "w");
        delivery.complete().await.unwrap();
    }
    assert_eq!(from.view().await.unwrap().counts.stored(), 0);
}

#[tokio::test]
async fn a_topic_that_is_forwarded_to_chooses_who_gets_it() {
    let (engine, clock) = engine_with(&[("from", to("news"))]).await;
    let client = engine.client().clone();
    let topic = client.create_topic("news").await.unwrap();
    let red = Rule::new("red", Filter::sql("color = 'red'"));
    let some = topic.subscribe("some", service_bus_options(false), [red]).await.unwrap();
    let all = topic.subscribe("all", service_bus_options(false), [Rule::everything()]).await.unwrap();
    let _host = host(engine, clock).await;
    let from = queue(&client, "from");
    from.send(Message::new("blue").property("color", "blue")).await.unwrap();
    from.send(Message::new("red").property("color", "red")).await.unwrap();
    assert_eq!(bodies(&all, 2).await, ["blue", "red"]);
    assert_eq!(bodies(&some, 1).await, ["red"]);
    assert_eq!(some.view().await.unwrap().counts.stored(), 0);
}

#[tokio::test]
async fn what_cannot_go_on_yet_waits_in_its_place() {
    let (engine, clock) = engine_with(&[("from", to("late"))]).await;
    let client = engine.client().clone();
    let from = queue(&client, "from");
    for body in ["1", "2"] {
        from.send(Message::new(body).workflow("w")).await.unwrap();
    }
    let host = host(engine, clock.clone()).await;
    // It has tried often, and nothing was lost by that.
    for _ in 0..200 {
        clock.advance(limits::SERVICE_BUS_FORWARD_RETRY);
        tokio::task::yield_now().await;
        assert_eq!(from.view().await.unwrap().counts.dead_lettered, 0);
    }
    let late = host.queue("late", QueueOptions { order: Order::Arrival, ..QueueOptions::default() }).await;
    // However often it has tried by now, it tries again after this.
    let arrived = tokio::spawn(async move { bodies(&late, 2).await });
    while !arrived.is_finished() {
        clock.advance(limits::SERVICE_BUS_FORWARD_RETRY);
        tokio::task::yield_now().await;
        let _ = client.queue("from").unwrap().view().await.unwrap();
    }
    assert_eq!(arrived.await.unwrap(), ["1", "2"]);
    assert!(clock.elapsed() < Duration::from_secs(100_000));
    let counts = from.view().await.unwrap().counts;
    assert_eq!((counts.stored(), counts.dead_lettered), (0, 0));
}

#[tokio::test]
async fn what_goes_on_to_a_queue_by_position_has_the_position_that_it_says() {
    let (engine, clock) = engine_with(&[("from", to("placed")), ("placed", nothing())]).await;
    let client = engine.client().clone();
    let by_position = QueueOptions { order: Order::POSITION, ..service_bus_options(false) };
    client.change_queue("placed", by_position).await.unwrap();
    for position in [2, 1_i64] {
        let message = Message::new(position.to_string()).workflow("w");
        queue(&client, "from").send(message.property("seriatim-position", position)).await.unwrap();
    }
    let _host = host(engine, clock).await;
    assert_eq!(bodies(&queue(&client, "placed"), 2).await, ["1", "2"]);
}

#[tokio::test]
async fn what_its_target_never_takes_is_a_dead_letter_and_keeps_nobody_back() {
    let strict = Description { requires_session: true, ..Description::default() };
    let (engine, clock) = engine_with(&[("from", to("strict")), ("strict", strict)]).await;
    let client = engine.client().clone();
    let from = client.queue("from").unwrap();
    client
        .change_queue("from", QueueOptions { order: Order::None, ..service_bus_options(false) })
        .await
        .unwrap();
    for (body, session) in [("1", Some("s")), ("2", None), ("3", Some("s"))] {
        let message = Message::new(body);
        from.send(match session {
            Some(session) => message.workflow(session),
            None => message,
        })
        .await
        .unwrap();
    }
    let _host = host(engine, clock).await;
    assert_eq!(bodies(&queue(&client, "strict"), 2).await, ["1", "3"]);
    let dead = from.dead_letters(None, 10).await.unwrap();
    assert_eq!(
        dead.iter().map(|dead| dead.dead_letter.reason.as_str()).collect::<Vec<_>>(),
        ["ForwardingRefused"]
    );
}

#[tokio::test]
async fn a_dead_letter_that_its_target_never_takes_stays_and_keeps_nobody_back() {
    let strict = Description { requires_session: true, ..Description::default() };
    let (engine, clock) = engine_with(&[("from", dead_letters_to("strict")), ("strict", strict)]).await;
    let client = engine.client().clone();
    let from = queue(&client, "from");
    for message in [Message::new("1").workflow("s"), Message::new("2"), Message::new("3").workflow("s")] {
        from.send(message).await.unwrap();
        let mut delivery = from.receive(TIMEOUT).await.unwrap().unwrap();
        delivery.dead_letter("why", "because").await.unwrap();
    }
    let _host = host(engine, clock).await;
    assert_eq!(bodies(&queue(&client, "strict"), 2).await, ["1", "3"]);
    assert_eq!(from.view().await.unwrap().counts.stored(), 1);
}

#[tokio::test]
async fn nobody_receives_from_an_entity_that_forwards() {
    let (engine, clock) = engine_with(&[("from", to("to")), ("to", nothing())]).await;
    let host = host(engine, clock).await;
    let mut client = host.client().await;
    let attached = client.attach_receiver(0, Source::of("from")).await;
    let (condition, why) = client.refusal(&attached).await;
    assert_eq!(condition, "amqp:not-allowed");
    assert!(why.contains("forwards"), "{why}");
}

/// The annotations of the next message of an entity, as a client hears them.
async fn annotations(host: &Host, entity: &str) -> Vec<(Value, Value)> {
    let mut client = host.client().await;
    client.attach_receiver(0, Source::of(entity)).await;
    client.credit(0, 0, 1, false).await;
    client.another_answer().await.message().message_annotations().unwrap()
}

#[tokio::test]
async fn a_message_keeps_the_number_that_it_had_where_it_was_sent() {
    let entities = [("from", to("by")), ("by", to("to")), ("to", nothing())];
    let (engine, clock) = engine_with(&entities).await;
    let sent = queue(engine.client(), "from").send(Message::new("x")).await.unwrap();
    let first = Value::Long(i64::try_from(sent.sequence_number().unwrap().get()).unwrap());
    let host = host(engine, clock).await;
    let annotations = annotations(&host, "to").await;
    assert_eq!(lookup(&annotations, "x-opt-enqueue-sequence-number"), Some(&first));
    assert!(lookup(&annotations, "x-opt-sequence-number").is_some_and(|number| *number != first));
    assert_eq!(lookup(&annotations, "x-opt-deadletter-source"), None);
}

#[tokio::test]
async fn a_dead_letter_that_has_gone_on_says_where_it_became_one() {
    let entities = [("a_2F_b", dead_letters_to("by")), ("by", to("graves")), ("graves", nothing())];
    let (engine, clock) = engine_with(&entities).await;
    let from = queue(engine.client(), "a_2F_b");
    from.send(Message::new("x")).await.unwrap();
    from.receive(TIMEOUT).await.unwrap().unwrap().dead_letter("bad", "").await.unwrap();
    let host = host(engine, clock).await;
    let annotations = annotations(&host, "graves").await;
    assert_eq!(lookup(&annotations, "x-opt-deadletter-source"), Some(&Value::from("a/b")));
}

#[tokio::test]
async fn a_dead_letter_of_a_subscription_says_of_which() {
    let (engine, clock) = engine_with(&[("graves", nothing())]).await;
    let topic = engine.client().create_topic("news").await.unwrap();
    let options = service_bus_options(false);
    let subscription = topic.subscribe("some", options, [Rule::everything()]).await.unwrap();
    let descriptions = Descriptions::new(engine.client().clone(), false);
    descriptions.open().await.unwrap();
    let of = Some(subscription.view().await.unwrap().created_at);
    let description = Description { of, ..dead_letters_to("graves") };
    descriptions.describe(subscription.name(), &description).await.unwrap();
    topic.send(Message::new("x")).await.unwrap();
    subscription.receive(TIMEOUT).await.unwrap().unwrap().dead_letter("bad", "").await.unwrap();
    let host = host(engine, clock).await;
    let annotations = annotations(&host, "graves").await;
    let source = Value::from("news/Subscriptions/some");
    assert_eq!(lookup(&annotations, "x-opt-deadletter-source"), Some(&source));
}
