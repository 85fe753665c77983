//! A process that holds deliveries while it is stopped, and believes afterwards that it still does.
//!
//! Beside those who hold, another consumer waits in the same process: it gets what they have lost.

use std::path::Path;
use std::time::Duration;

use seriatim::Clock;
use seriatim::Delivery;
use seriatim::Engine;
use seriatim::Queue;
use seriatim::QueueOptions;
use seriatim::SystemClock;
use seriatim::error::OperationError;
use seriatim::error::SettleError;
use seriatim::error::SettleRefusal;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::kill::hold::CLOCKS_APART_MS;
use crate::kill::name::Name;
use crate::kill::name::Ordered;
use crate::kill::output_lines;
use crate::kill::output_lines::Task;
use crate::kill::output_lines::say;
use crate::kill::report::Answer;
use crate::kill::report::Ending;
use crate::kill::report::Report;
use crate::kill::report::Word;
use crate::kill::settler::name_of;

/// The shortest lock there is.
pub(crate) const LOCK_MS: u64 = 1_000;

/// Deliveries that are held in one round, each of a workflow of its own.
pub(crate) const HELD: u32 = 4;

/// How long the other consumer waits at once; it asks again.
const WAIT: Duration = Duration::from_secs(10);

/// Lives until the parent is gone: round after round.
pub(crate) async fn live(task: Task) {
    let queue = open(&task.file).await;
    for number in 1.. {
        let Some(Word::Hold) = next_word().await else { return };
        send(&queue, number, task.seed).await;
        let held = queue.receive_many(HELD as usize, Duration::ZERO).await.expect("the queue is there");
        let (completed, completions) = mpsc::unbounded_channel();
        held.iter().for_each(|delivery| output_lines::say_delivered(delivery, LOCK_MS));
        let other = tokio::spawn(take_over(queue.clone(), completed.clone()));
        let Some(Word::Settle) = next_word().await else { return };
        settle(held, &completed).await;
        all_completed(completions).await;
        other.abort();
        // What it was given after its last completion would be given back; there is nothing left to be given.
        let _ = other.await;
        say(&Report::RoundOver);
    }
}

async fn next_word() -> Option<Word> {
    tokio::task::spawn_blocking(output_lines::hear::<Word>).await.expect("the parent says words")
}

async fn open(file: &Path) -> Queue {
    let engine = Engine::open(file).await.expect("a new file");
    let lock = Duration::from_millis(LOCK_MS);
    let options = QueueOptions::by_position().lock(lock).delivery_count_max(u32::MAX);
    engine.client().create_queue(Ordered::Position.queue(), options).await.expect("a new queue")
}

async fn send(queue: &Queue, number: u64, seed: u64) {
    let names: Vec<Name> = (0..HELD).map(|workflow| Name::new(Ordered::Position, workflow, number)).collect();
    say(&Report::Sending(names.clone()));
    let messages = names.iter().map(|name| name.message(seed));
    let receipts = queue.send_batch(messages).await.expect("a send is accepted");
    let answer =
        |receipt: &seriatim::Receipt| Answer::Accepted(receipt.sequence_number().map(|number| number.get()));
    say(&Report::Sent(names.into_iter().zip(receipts.iter().map(answer)).collect()));
}

/// Every holder settles for itself, at the same time.
async fn settle(held: Vec<Delivery>, completed: &mpsc::UnboundedSender<()>) {
    let mut holders = JoinSet::new();
    for mut delivery in held {
        let completed = completed.clone();
        holders.spawn(async move { complete(&mut delivery, &completed).await });
    }
    while let Some(holder) = holders.join_next().await {
        holder.expect("a holder panicked");
    }
}

/// The other consumer: completes whatever it is given.
async fn take_over(queue: Queue, completed: mpsc::UnboundedSender<()>) {
    loop {
        if let Some(mut delivery) = queue.receive(WAIT).await.expect("the queue is there") {
            output_lines::say_delivered(&delivery, LOCK_MS);
            complete(&mut delivery, &completed).await;
        }
    }
}

async fn complete(delivery: &mut Delivery, completed: &mpsc::UnboundedSender<()>) {
    let hold = output_lines::hold(delivery.lock_token());
    let clock = SystemClock::default();
    let at = clock.now();
    say(&Report::Settling {
        hold: hold.clone(),
        endings: vec![(name_of(delivery), Ending::Completed)],
        at_ms: at.as_millis(),
    });
    let surely_over = delivery.locked_until() + Duration::from_millis(CLOCKS_APART_MS);
    if at >= surely_over && !is_lost(&delivery.renewal().renew().await) {
        say(&Report::Stopped(format!("the lock of {hold} was renewed after it had run out")));
    }
    let settled = delivery.complete().await;
    let at_ms = clock.now().as_millis();
    match settled {
        Ok(()) => {
            say(&Report::Settled { hold });
            let _ = completed.send(());
        }
        Err(error) if is_lost(&Err::<(), _>(error.clone())) => {
            say(&Report::Refused { hold, why: error.to_string(), at_ms });
        }
        Err(error) => say(&Report::Stopped(format!("{hold} is refused, but not for its lock: {error}"))),
    }
}

fn is_lost<T>(settled: &Result<T, SettleError>) -> bool {
    matches!(settled, Err(OperationError::Refused(SettleRefusal::LockLost)))
}

/// Waits until all that was held is completed.
async fn all_completed(mut completions: mpsc::UnboundedReceiver<()>) {
    for _ in 0..HELD {
        completions.recv().await.expect("the consumers hold the other end");
    }
}
