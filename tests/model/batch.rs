//! A batch is judged as its messages would be one after another: room for early messages is no exception.

use std::time::Duration;

use seriatim::Clock;
use seriatim::Message;
use seriatim::Order;
use seriatim::Queue;
use seriatim::QueueOptions;
use seriatim::error::SendRefusal;

use crate::model::random::Random;

const SEEDS: u64 = 200;
const BATCHES: usize = 6;

#[tokio::test]
async fn a_batch_is_refused_exactly_where_its_messages_one_by_one_would_be() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("SERIATIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SERIATIM_SEEDS").unwrap_or(SEEDS),
    };
    for seed in seeds {
        compare(seed).await;
    }
}

/// Sends the same to a queue in batches and to another one by one, until the first refusal.
async fn compare(seed: u64) {
    let mut random = Random::new(seed);
    let (engine, clock) = seriatim::testing::engine().await.expect("an engine in memory opens");
    let order = random.pick(&[Order::POSITION, Order::After]);
    let early_max = random.below(4);
    let options = QueueOptions::default().order(order).early_max(early_max);
    let whole = engine.client().create_queue("whole", options.clone()).await.expect("a new queue");
    let parts = engine.client().create_queue("parts", options).await.expect("a new queue");
    for _ in 0..BATCHES {
        let count = 1 + random.below(8);
        let later = clock.now() + Duration::from_secs(60);
        let batch: Vec<Message> = (0..count)
            .map(|_| {
                let message = message(order, 1 + random.below(10));
                if random.chance(20) { message.schedule_at(later) } else { message }
            })
            .collect();
        let answers = (together(&whole, &batch).await, one_by_one(&parts, &batch).await);
        assert_eq!(answers.0, answers.1, "SERIATIM_SEED={seed} fails: {early_max} may wait, {batch:?}");
        if answers.0.is_some() {
            return;
        }
    }
}

fn message(order: Order, place: u64) -> Message {
    let message = Message::new("body").workflow("w").message_id(place.to_string());
    match order {
        Order::After if place == 1 => message.first(),
        Order::After => message.after((place - 1).to_string()),
        _ => message.position(place),
    }
}

async fn together(queue: &Queue, batch: &[Message]) -> Option<usize> {
    let sent = queue.send_batch(batch.iter().cloned()).await;
    sent.err().map(|error| full_at(error.refusal()))
}

async fn one_by_one(queue: &Queue, batch: &[Message]) -> Option<usize> {
    for (index, message) in batch.iter().enumerate() {
        if let Err(error) = queue.send(message.clone()).await {
            assert_eq!(full_at(error.refusal()), 0);
            return Some(index);
        }
    }
    None
}

fn full_at(refusal: Option<&SendRefusal>) -> usize {
    match refusal {
        Some(SendRefusal::WorkflowFull { index, .. }) => *index,
        other => panic!("only the room may be too small: {other:?}"),
    }
}
