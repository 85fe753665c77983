//! What a send to a topic costs beside one to a queue: ten subscriptions of which one matches, and one rule against ten thousand.
//!
//! `cargo bench --bench topics`. The contenders take turns; each figure is the median of five rounds.

use std::time::Duration;

use seriatim::Clock;
use seriatim::Engine;
use seriatim::Message;
use seriatim::QueueOptions;
use seriatim::SystemClock;
use seriatim::topic::Correlation;
use seriatim::topic::Filter;
use seriatim::topic::Rule;

/// Messages of one round.
const MESSAGES: usize = 20_000;

/// Messages of one send.
const BATCH: usize = 100;

/// Sends that are under way at once.
const SENDERS: usize = 8;

const ROUNDS: usize = 5;

#[derive(Clone, Copy)]
enum Contender {
    Queue,
    TenSubscriptions,
    OneRule,
    ManyRules,
}

const CONTENDERS: [Contender; 4] =
    [Contender::Queue, Contender::TenSubscriptions, Contender::OneRule, Contender::ManyRules];

fn colour(number: usize) -> Rule {
    Rule::new(format!("r{number}"), Filter::Correlation(Correlation::default().subject(format!("s{number}"))))
}

/// An engine on a file of its own, with the queue or the topic "news".
async fn open(folder: &std::path::Path, contender: Contender) -> Engine {
    let engine = Engine::open(folder.join("bench.redb")).await.expect("the folder can be written");
    let client = engine.client();
    let (subscriptions, rules) = match contender {
        Contender::Queue => {
            client.create_queue("news", QueueOptions::default()).await.expect("it is new");
            return engine;
        }
        Contender::TenSubscriptions => (10, 1),
        Contender::OneRule => (1, 1),
        Contender::ManyRules => (10, 1_000),
    };
    let topic = client.create_topic("news").await.expect("it is new");
    for subscription in 0..subscriptions {
        let rules = (0..rules).map(|rule| colour(subscription * rules + rule));
        let name = format!("sub{subscription}");
        topic.subscribe(&name, QueueOptions::default(), rules).await.expect("it is new");
    }
    engine
}

async fn round(contender: Contender) -> Duration {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let engine = open(folder.path(), contender).await;
    let clock = SystemClock::default();
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let client = engine.client().clone();
            tokio::spawn(async move {
                for batch in 0..MESSAGES / BATCH / SENDERS {
                    let messages = (0..BATCH).map(|number| {
                        let workflow = format!("w{sender}-{}", (batch * BATCH + number) % 100);
                        Message::new(vec![7; 100]).workflow(workflow).subject("s0")
                    });
                    match contender {
                        Contender::Queue => {
                            let queue = client.queue("news").expect("a name");
                            queue.send_batch(messages).await.expect("it is taken");
                        }
                        _ => {
                            let topic = client.topic("news").expect("a name");
                            topic.send_batch(messages).await.expect("it is taken");
                        }
                    }
                }
            })
        })
        .collect();
    for sender in senders {
        sender.await.expect("it sends");
    }
    let elapsed = clock.elapsed();
    engine.close().await;
    elapsed
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut taken: [Vec<Duration>; 4] = Default::default();
    for _ in 0..ROUNDS {
        for (contender, taken) in CONTENDERS.into_iter().zip(&mut taken) {
            taken.push(runtime.block_on(round(contender)));
        }
    }
    let median = |mut taken: Vec<Duration>| {
        taken.sort();
        taken[ROUNDS / 2].as_secs_f64()
    };
    let [queue, ten, one, many] = taken.map(median);
    println!("{MESSAGES} messages, {BATCH} a send, {SENDERS} senders, medians of {ROUNDS} rounds");
    println!("queue                                     {:>8.0} messages a second", MESSAGES as f64 / queue);
    println!("topic, 10 subscriptions, one matches      {:>8.2} of the queue", queue / ten);
    println!("topic, 1 subscription with 1 rule         {:>8.2} of the queue", queue / one);
    println!("topic, 10 subscriptions with 10,000 rules {:>8.2} times the cost of 1 rule", many / one);
}
