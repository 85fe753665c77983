//! How much a client may say, and for how long it may wait.

use std::time::Duration;

use crate::amqp::Value;
use crate::amqp::lookup;
use crate::limits;
use crate::message::Message;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::tests::source::Source;
use crate::service_bus::tests::wire::ATTACH;
use crate::service_bus::tests::wire::DISPOSITION;
use crate::service_bus::tests::wire::FLOW;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::REJECTED;
use crate::service_bus::tests::wire::described;
use crate::service_bus::tests::wire::map;

const BODY_BYTES: usize = 4 * 1024 * 1024;

#[tokio::test]
async fn a_reason_and_a_description_have_4096_characters() {
    let host = Host::open().await;
    let queue = host.queue("q", QueueOptions::default()).await;
    queue.send(Message::new("x")).await.unwrap();
    let mut client = host.client().await;
    client.attach_receiver(0, Source::of("q")).await;
    client.credit(0, 0, 1, false).await;
    client.another_answer().await;
    let (reason, description) = ("\u{fc}".repeat(4_096), "\u{1f600}".repeat(4_096));
    let info = [("DeadLetterReason", &reason), ("DeadLetterErrorDescription", &description)];
    let info = info.map(|(name, text)| (Value::symbol(name), Value::from(text.as_str()))).to_vec();
    let error = vec![Value::symbol("com.microsoft:dead-letter"), Value::Null, Value::Map(info)];
    let rejected = described(REJECTED, vec![described(0x1d, error)]);
    assert_eq!(client.settle(0, rejected).await.state(4), REJECTED);
    client.attach_receiver(1, Source::of("q/$deadletterqueue")).await;
    client.credit(1, 0, 1, false).await;
    let dead_letter = client.another_answer().await.message().application_properties().unwrap();
    let described = |name| lookup(&dead_letter, name).and_then(Value::as_str).map(str::to_owned);
    assert_eq!(described("DeadLetterReason"), Some(reason));
    assert_eq!(described("DeadLetterErrorDescription"), Some(description));
}

#[tokio::test]
async fn who_asks_for_the_next_session_waits_as_long_as_it_says() {
    let host = Host::open().await;
    let queue = host.queue("q", QueueOptions::default()).await;
    let mut client = host.client().await;
    // The answer to a drain of another link tells that the wait has begun.
    client.attach_receiver(0, Source::of("q")).await;
    let next = Source::of("q").filter("com.microsoft:session-filter", Value::Null);
    client.ask_for_receiver(1, next.property("com.microsoft:timeout", Value::Uint(600_000))).await;
    assert!(client.drained(0, 1).await.is_empty());
    // Longer than who says nothing waits, and shorter than a client may be silent.
    host.clock.advance(Duration::from_secs(200));
    queue.send(Message::new("x").workflow("s")).await.unwrap();
    let attached = client.another_answer().await;
    assert_eq!(attached.code, ATTACH);
    assert_ne!(*attached.field(5), Value::Null, "it has a session, and is not refused");
}

#[tokio::test]
async fn a_queue_that_takes_4_mib_is_received_from_in_full() {
    let host = Host::open().await;
    let options = QueueOptions { order: Order::None, body_bytes_max: BODY_BYTES, ..QueueOptions::default() };
    let queue = host.queue("q", options).await;
    queue.send(Message::new(vec![7; BODY_BYTES])).await.unwrap();
    let mut client = host.client().await;
    let attached = client.attach_receiver(0, Source::of("q")).await;
    assert_eq!(
        attached.field(10).as_u64(),
        Some(0),
        "whoever is sent messages is told no limit: {attached:?}"
    );
    client.credit(0, 0, 1, false).await;
    assert!(client.answer(0).await.len() > BODY_BYTES);
    let attached = client.attach_sender(1, vec![Value::from("q")]).await;
    let bytes_max = attached.field(10).as_u64().unwrap();
    assert!(bytes_max >= BODY_BYTES as u64);
    let batch = lookup(attached.field(13).as_map().unwrap(), "com.microsoft:max-message-batch-size").cloned();
    assert_eq!(batch, Some(Value::Ulong(bytes_max)));
}

#[tokio::test]
async fn what_could_not_be_passed_on_is_nothing_and_not_unknown() {
    let host = Host::open().await;
    let queue = host.queue("q", QueueOptions::default()).await;
    queue.send(Message::new("x")).await.unwrap();
    queue.receive(Duration::ZERO).await.unwrap().unwrap().dead_letter("bad", "").await.unwrap();
    let mut client = host.client().await;
    let address = "q/$Transfer/$DeadLetterQueue";
    assert_ne!(*client.attach_receiver(0, Source::of(address)).await.field(5), Value::Null);
    assert!(client.drained(0, 10).await.is_empty());
    client.attach_receiver(1, Source::of(address).copy()).await;
    assert!(client.drained(1, 10).await.is_empty());
    client.manage(address).await;
    assert_eq!(client.ask("peek-message", &map(vec![("message-count", Value::Int(1))])).await.status, 204);
}

#[tokio::test]
async fn one_session_of_amqp_has_more_than_a_thousand_links() {
    let host = Host::open().await;
    host.queue("q", QueueOptions::default()).await;
    let mut client = host.client().await;
    for handle in 0..1_500 {
        let attached = client.attach_receiver(handle, Source::of("q")).await;
        assert_eq!((attached.code, attached.field(1)), (ATTACH, &Value::Uint(handle)));
    }
    client.credit(1_499, 0, 1, true).await;
    assert_eq!(client.next_answer().await.code, FLOW);
}

#[tokio::test]
async fn a_request_that_is_too_large_is_refused_and_the_next_may_come() {
    const REQUESTS: u32 = 0;
    const COORDINATOR: u32 = 1;
    let host = Host::open().await;
    host.queue("q", QueueOptions::default()).await;
    let mut client = host.client().await;
    client.attach_sender(REQUESTS, vec![Value::from("q/$management")]).await;
    client.attach_coordinator(COORDINATOR).await;
    let too_large = vec![0; usize::try_from(limits::SERVICE_BUS_MESSAGE_BYTES_MAX).unwrap() + 1];
    for handle in [REQUESTS, COORDINATOR] {
        let number = client.transfer(handle, 0, &too_large).await;
        let refused = loop {
            let answer = client.another_answer().await;
            if answer.code == DISPOSITION {
                break answer;
            }
        };
        assert_eq!((refused.field(1).as_u64(), refused.state(4)), (Some(number.into()), REJECTED));
        assert_eq!(refused.error(4).0, "amqp:link:message-size-exceeded");
        let granted = client.next_answer().await;
        assert_eq!((granted.code, granted.field(4)), (FLOW, &Value::Uint(handle)));
        assert_eq!(granted.field(6), &Value::Uint(limits::SERVICE_BUS_REQUEST_CREDIT));
    }
}

#[tokio::test]
async fn who_gives_up_waiting_for_the_next_session_keeps_it_from_nobody() {
    let host = Host::open().await;
    let queue = host.queue("q", QueueOptions::default()).await;
    let mut client = host.client().await;
    client.attach_receiver(0, Source::of("q")).await;
    for round in 0..50 {
        let next = Source::of("q").filter("com.microsoft:session-filter", Value::Null);
        client.ask_for_receiver(1, next.property("com.microsoft:timeout", Value::Uint(86_400_000))).await;
        assert!(client.drained(0, 1).await.is_empty(), "the answer to a drain tells that the wait has begun");
        client.detach(1).await;
        // What the engine was told when the link ended, it was told before this is answered.
        assert!(client.drained(0, 1).await.is_empty());
        queue.send(Message::new("x").workflow("s")).await.unwrap();
        let received = queue.receive(Duration::ZERO).await.unwrap();
        received.unwrap_or_else(|| panic!("somebody else has it in round {round}")).complete().await.unwrap();
    }
}

#[tokio::test]
async fn a_client_that_takes_no_answers_may_make_a_hundred_requests() {
    let host = Host::open().await;
    host.queue("q", QueueOptions::default()).await;
    let mut client = host.client().await;
    client.manage_without_credit("q").await;
    for _ in 0..limits::SERVICE_BUS_REQUEST_CREDIT {
        client.ask_only("peek-message", &map(vec![("message-count", Value::Int(1))])).await;
    }
    // The answer to an attach is heard after every request was.
    client.ask_for_receiver(0, Source::of("q")).await;
    let mut granted = 0;
    loop {
        let answer = client.next_answer().await;
        granted += usize::from(answer.code == FLOW && *answer.field(4) == Value::Uint(101));
        if answer.code == ATTACH {
            break;
        }
    }
    assert_eq!(granted, 1, "at first, and not again for what is not answered");
    client.credit(100, 0, 1, false).await;
    assert_eq!(client.reply().await.status, 204);
    client.ask_only("peek-message", &map(vec![("message-count", Value::Int(1))])).await;
    client.credit(100, 1, 100, false).await;
    for _ in 0..limits::SERVICE_BUS_REQUEST_CREDIT {
        assert_eq!(client.reply().await.status, 204);
    }
}
