//! The management judges what it is given.

use std::time::Duration;

use bytes::Bytes;

use crate::amqp::Value;
use crate::amqp::lookup;
use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::message::Message;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::tests::source::Source;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::ReceivedFrame;
use crate::service_bus::tests::wire::Wire;
use crate::service_bus::tests::wire::data;
use crate::service_bus::tests::wire::map;
use crate::topic::Rule;

/// A client that has session `s` of a queue with one message, and its management.
async fn with_session(host: &Host) -> Wire {
    let queue = host.queue("q", QueueOptions::default()).await;
    queue.send(Message::new("0").workflow("s")).await.unwrap();
    let mut client = host.client().await;
    client.attach_receiver(0, Source::of("q").session("s")).await;
    client.manage("q").await;
    client
}

fn state(value: Value) -> Value {
    map(vec![("session-id", Value::from("s")), ("session-state", value)])
}

#[tokio::test]
async fn a_state_of_text_is_kept_as_text_and_any_other_type_erases_nothing() {
    let host = Host::open().await;
    let mut client = with_session(&host).await;
    for value in [Value::from("step 3"), Value::Binary(Bytes::from_static(b"step 4"))] {
        assert_eq!(client.ask("set-session-state", &state(value.clone())).await.status, 200);
        let wrong =
            [state(Value::Int(7)), state(Value::Boolean(true)), map(vec![("session-id", Value::from("s"))])];
        for wrong in &wrong {
            let refused = client.ask("set-session-state", wrong).await;
            assert_eq!(refused.status, 400);
            assert!(refused.description.contains("session-state"), "{refused:?}");
        }
        let kept = client.ask("get-session-state", &map(vec![("session-id", Value::from("s"))])).await;
        assert_eq!(*kept.get("session-state"), value);
    }
    assert_eq!(client.ask("set-session-state", &state(Value::Null)).await.status, 200);
    let kept = client.ask("get-session-state", &map(vec![("session-id", Value::from("s"))])).await;
    assert_eq!(*kept.get("session-state"), Value::Null);
}

#[tokio::test]
async fn every_field_of_another_type_is_refused_by_its_name() {
    let host = Host::open().await;
    let mut client = with_session(&host).await;
    let token = || Value::Array(vec![Value::Uuid([7; 16])]);
    let done = || ("disposition-status", Value::from("suspended"));
    let numbers = || ("sequence-numbers", Value::Array(vec![Value::Long(1)]));
    let entry = |name, value| {
        let entry = map(vec![("message", Value::Binary(data(b"x"))), (name, value)]);
        map(vec![("messages", Value::List(vec![entry]))])
    };
    let wrong = [
        ("renew-lock", "lock-tokens", map(vec![("lock-tokens", Value::Array(vec![Value::from("a")]))])),
        ("update-disposition", "disposition-status", map(vec![("disposition-status", Value::Int(1))])),
        ("update-disposition", "disposition-status", map(vec![("lock-tokens", token())])),
        ("update-disposition", "deadletter-reason", map(vec![done(), ("deadletter-reason", Value::Int(1))])),
        (
            "update-disposition",
            "deadletter-description",
            map(vec![done(), ("deadletter-description", token())]),
        ),
        (
            "update-disposition",
            "properties-to-modify",
            map(vec![done(), ("properties-to-modify", Value::from("a"))]),
        ),
        ("receive-by-sequence-number", "sequence-numbers", map(vec![("sequence-numbers", Value::Long(1))])),
        (
            "receive-by-sequence-number",
            "receiver-settle-mode",
            map(vec![numbers(), ("receiver-settle-mode", Value::Int(-1))]),
        ),
        ("schedule-message", "message", map(vec![("messages", Value::List(vec![map(Vec::new())]))])),
        ("schedule-message", "messages", map(vec![("messages", Value::List(vec![Value::from("a")]))])),
        ("schedule-message", "message-id", entry("message-id", Value::Boolean(true))),
        ("schedule-message", "session-id", entry("session-id", Value::List(Vec::new()))),
        ("cancel-scheduled-message", "sequence-numbers", map(vec![("sequence-numbers", Value::from("1"))])),
        ("peek-message", "from-sequence-number", map(vec![("from-sequence-number", Value::from("1"))])),
        ("peek-message", "message-count", map(vec![("message-count", Value::Boolean(true))])),
        ("peek-message", "session-id", map(vec![("session-id", Value::Int(1))])),
        ("get-message-sessions", "last-updated-time", map(vec![("last-updated-time", Value::from("now"))])),
        ("get-message-sessions", "skip", map(vec![("skip", Value::from("none"))])),
        (
            "renew-session-lock",
            "session-id",
            map(vec![("session-id", Value::Binary(Bytes::from_static(b"s")))]),
        ),
        ("peek-message", "body", Value::List(Vec::new())),
    ];
    for (operation, field, body) in wrong {
        let reply = client.ask(operation, &body).await;
        assert_eq!(reply.status, 400, "{operation}: {field}: {reply:?}");
        assert!(reply.description.contains(field), "{operation}: {field}: {reply:?}");
    }
}

fn annotation(message: &ReceivedFrame, name: &str) -> Option<Value> {
    lookup(&message.message().message_annotations().unwrap(), name).cloned()
}

#[tokio::test]
async fn a_message_of_a_session_says_until_when_it_is_locked_and_by_what_it_is_settled() {
    let host = Host::open().await;
    let mut client = with_session(&host).await;
    client.credit(0, 0, 1, false).await;
    let message = client.another_answer().await;
    let until = host.clock.now() + QueueOptions::default().lock;
    let until = Value::Timestamp(i64::try_from(until.as_millis()).unwrap());
    assert_eq!(annotation(&message, "x-opt-locked-until"), Some(until.clone()));
    let token = lookup(&message.message().delivery_annotations().unwrap(), "x-opt-lock-token").cloned();
    let Some(Value::Uuid(token)) = token else { panic!("{token:?}") };
    let Value::Binary(tag) = message.field(2) else { panic!("a delivery has a tag") };
    let reordered = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15].map(|at| tag[at]);
    assert_eq!(token, reordered, "the tag is the token as .NET writes it");
    let deferred = map(vec![
        ("disposition-status", Value::from("defered")),
        ("lock-tokens", Value::Array(vec![Value::Uuid(token)])),
        ("session-id", Value::from("s")),
    ]);
    assert_eq!(client.ask("update-disposition", &deferred).await.status, 200);
    let Some(Value::Long(number)) = annotation(&message, "x-opt-sequence-number") else {
        panic!("no number")
    };
    let fetch = map(vec![
        ("sequence-numbers", Value::Array(vec![Value::Long(number)])),
        ("receiver-settle-mode", Value::Uint(1)),
        ("session-id", Value::from("s")),
    ]);
    let fetched = client.ask("receive-by-sequence-number", &fetch).await;
    let entry = fetched.get("messages").as_list().unwrap()[0].as_map().unwrap().to_vec();
    let payload = lookup(&entry, "message").and_then(Value::as_binary).cloned().unwrap();
    let fetched = ReceivedFrame { code: 0, fields: Vec::new(), payload };
    assert_eq!(annotation(&fetched, "x-opt-locked-until"), Some(until), "by number, too");
}

#[tokio::test]
async fn a_session_is_named_by_128_characters() {
    let host = Host::open().await;
    let queue = host.queue("q", QueueOptions { order: Order::Arrival, ..QueueOptions::default() }).await;
    let id = "\u{e9}".repeat(128);
    queue.send(Message::new("0").workflow(id.clone())).await.unwrap();
    let mut client = host.client().await;
    client.attach_receiver(0, Source::of("q").session(&id)).await;
    client.credit(0, 0, 1, false).await;
    assert_eq!(client.another_answer().await.body(), "0");
    assert!(queue.receive(Duration::ZERO).await.unwrap().is_none(), "the session is the client's");
}

#[tokio::test]
async fn what_is_asked_for_to_be_deleted_is_deleted_once_the_answer_is_on_its_way() {
    let host = Host::open().await;
    let queue = host.queue("plain", QueueOptions { order: Order::None, ..QueueOptions::default() }).await;
    let number = queue.send(Message::new("x")).await.unwrap().sequence_number().unwrap();
    queue.receive(Duration::ZERO).await.unwrap().unwrap().defer().await.unwrap();
    let mut client = host.client().await;
    client.manage_without_credit("plain").await;
    let number = i64::try_from(number.get()).unwrap();
    let fetch = map(vec![
        ("sequence-numbers", Value::Array(vec![Value::Long(number)])),
        ("receiver-settle-mode", Value::Uint(0)),
    ]);
    client.ask_only("receive-by-sequence-number", &fetch).await;
    // The answer to a second request follows that to the first: it has been made.
    client.attach_receiver(0, Source::of("plain")).await;
    while queue.view().await.unwrap().counts.locked == 0 {
        assert!(client.drained(0, 1).await.is_empty());
    }
    assert_eq!(queue.view().await.unwrap().counts.stored(), 1, "nobody has it yet");
    client.credit(100, 0, 10, false).await;
    let reply = client.reply().await;
    assert_eq!(reply.get("messages").as_list().unwrap().len(), 1);
    while queue.view().await.unwrap().counts.stored() > 0 {
        client.drained(0, 1).await;
    }
}

#[tokio::test]
async fn what_was_to_be_deleted_and_never_left_is_still_there() {
    let host = Host::open().await;
    let queue = host.queue("plain", QueueOptions { order: Order::None, ..QueueOptions::default() }).await;
    let number = queue.send(Message::new("x")).await.unwrap().sequence_number().unwrap();
    queue.receive(Duration::ZERO).await.unwrap().unwrap().defer().await.unwrap();
    let mut client = host.client().await;
    client.manage_without_credit("plain").await;
    let fetch = map(vec![
        ("sequence-numbers", Value::Array(vec![Value::Long(i64::try_from(number.get()).unwrap())])),
        ("receiver-settle-mode", Value::Uint(0)),
    ]);
    client.ask_only("receive-by-sequence-number", &fetch).await;
    client.detach(100).await;
    let counts = queue.view().await.unwrap().counts;
    assert_eq!((counts.by_consumer, counts.locked), (1, 0), "{counts:?}");
}

/// The sessions that the management of an entity lists, of those whose state was set since an instant.
async fn set_since(host: &Host, entity: &str, instant: Timestamp) -> Vec<String> {
    let mut client = host.client().await;
    client.manage(entity).await;
    let since = Value::Timestamp(i64::try_from(instant.as_millis()).unwrap());
    let asked = map(vec![("last-updated-time", since), ("skip", Value::Int(0)), ("top", Value::Int(10))]);
    let answer = client.ask("get-message-sessions", &asked).await;
    if answer.status == 204 {
        return Vec::new();
    }
    let ids = answer.get("sessions-ids");
    let Value::Array(ids) = ids else { panic!("{ids:?}") };
    ids.iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn sessions_since_an_instant_are_those_whose_state_was_set_since_it() {
    let host = Host::open().await;
    let topic = host.engine.client().create_topic("t").await.unwrap();
    let of_topic = topic.subscribe("s", QueueOptions::default(), [Rule::everything()]).await.unwrap();
    let queue = host.queue("q", QueueOptions::default()).await;
    for (queue, entity) in [(queue, "q"), (of_topic, "t/subscriptions/s")] {
        let begin = host.clock.now();
        let set = async |id: &str, state: Option<&'static str>| {
            queue.workflow(id).unwrap().set_state(state.map(Bytes::from)).await.unwrap();
        };
        queue.send(Message::new("0").workflow("stateless")).await.unwrap();
        for id in ["early", "late", "cleared"] {
            set(id, Some("1")).await;
        }
        host.clock.advance(Duration::from_secs(60));
        let later = host.clock.now();
        set("late", Some("2")).await;
        set("cleared", None).await;
        assert_eq!(set_since(&host, entity, begin).await, ["early", "late"], "{entity}");
        assert_eq!(set_since(&host, entity, later).await, ["late"], "{entity}");
        assert_eq!(set_since(&host, entity, later + Duration::from_millis(1)).await, [""; 0], "{entity}");
        let any = Timestamp::from_millis(253_402_300_800_000);
        assert_eq!(set_since(&host, entity, any).await, ["early", "late", "stateless"], "{entity}");
    }
}
