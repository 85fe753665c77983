//! Looks show what is there, whatever its size, and read little more than they show.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::amqp::Value;
use crate::engine::Queue;
use crate::id::SequenceNumber;
use crate::message::Message;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::management::looking::PageLength;
use crate::service_bus::refusal::condition;
use crate::service_bus::tests::source::Source;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::Wire;
use crate::service_bus::tests::wire::map;

fn plain() -> QueueOptions {
    QueueOptions { order: Order::None, ..QueueOptions::default() }
}

/// How many messages a peek shows, from a number on.
async fn peeked(client: &mut Wire, from: u64, count: i32) -> usize {
    let from = Value::Long(i64::try_from(from).unwrap());
    let asked = map(vec![("from-sequence-number", from), ("message-count", Value::Int(count))]);
    let reply = client.ask("peek-message", &asked).await;
    match reply.status {
        204 => 0,
        _ => reply.get("messages").as_list().unwrap().len(),
    }
}

#[tokio::test]
async fn a_page_of_a_look_has_as_many_messages_as_have_the_bytes_of_an_answer() {
    let host = Host::open().await;
    let queue = host.queue("q", plain()).await;
    let (small, large) = ("x".to_owned(), "x".repeat(500_000));
    let mut first = Vec::new();
    for body in [&small, &large] {
        for _ in 0..4 {
            first.push(queue.send(Message::new(body.clone())).await.unwrap().sequence_number().unwrap());
        }
    }
    let mut length = PageLength::default();
    let mut lengths = Vec::new();
    for from in [first[0], first[4]] {
        length.note(&queue.peek(from, 4).await.unwrap());
        lengths.push(length.messages());
    }
    assert_eq!(lengths, [256, 1]);
    let mut client = host.client().await;
    client.manage("q").await;
    assert_eq!(peeked(&mut client, 0, 100).await, 5, "the small ones, and one of the large");
    assert_eq!(peeked(&mut client, first[5].get(), 100).await, 1);
}

/// Dead letters of some reasons; their numbers.
async fn with_dead_letters(queue: &Queue) -> Vec<SequenceNumber> {
    for number in 0..900 {
        queue.send(Message::new(number.to_string())).await.unwrap();
    }
    let mut numbers = Vec::new();
    for (at, mut delivery) in queue.receive_many(900, Duration::ZERO).await.unwrap().into_iter().enumerate() {
        numbers.push(delivery.sequence_number());
        // The last reason of the alphabet has the first numbers.
        let reason = ["z", "a", "m", "a"][at * 4 / 900];
        delivery.dead_letter(reason, "").await.unwrap();
    }
    numbers
}

#[tokio::test]
async fn dead_letters_of_every_reason_are_shown_by_number_from_any_number_on() {
    let host = Host::open().await;
    let numbers = with_dead_letters(&host.queue("q", plain()).await).await;
    let mut client = host.client().await;
    client.attach_receiver(0, Source::of("q/$deadletterqueue").copy()).await;
    let seen = client.drained(0, 1_000).await;
    let bodies: Vec<String> = seen.iter().map(|message| message.body()).collect();
    assert_eq!(bodies, (0..900).map(|number| number.to_string()).collect::<Vec<_>>());
    client.manage("q/$deadletterqueue").await;
    for (from, count, shown) in [(0, 10, 10), (450, 256, 256), (890, 256, 10), (899, 1, 1)] {
        assert_eq!(peeked(&mut client, numbers[from].get(), count).await, shown, "from {from}");
    }
    assert_eq!(peeked(&mut client, numbers[899].get() + 1, 10).await, 0);
}

#[tokio::test]
async fn messages_that_are_too_large_together_are_not_handed_out_by_number() {
    let host = Host::open().await;
    let queue = host.queue("q", plain()).await;
    for _ in 0..40 {
        queue.send(Message::new("x".repeat(500_000))).await.unwrap();
    }
    let mut numbers = BTreeSet::new();
    while let Some(mut delivery) = queue.receive(Duration::ZERO).await.unwrap() {
        numbers.insert(delivery.sequence_number());
        delivery.defer().await.unwrap();
    }
    let mut client = host.client().await;
    client.manage("q").await;
    let fetch = |count: usize| {
        let numbers = numbers.iter().take(count).map(|number| Value::Long(number.get().cast_signed()));
        map(vec![
            ("sequence-numbers", Value::Array(numbers.collect())),
            ("receiver-settle-mode", Value::Uint(1)),
        ])
    };
    let refused = client.ask("receive-by-sequence-number", &fetch(40)).await;
    assert_eq!((refused.status, refused.condition.as_str()), (400, condition::SIZE_EXCEEDED));
    assert_eq!(queue.view().await.unwrap().counts.by_consumer, 40, "nothing was handed out");
    let fetched = client.ask("receive-by-sequence-number", &fetch(20)).await;
    assert_eq!(fetched.get("messages").as_list().unwrap().len(), 20);
}
