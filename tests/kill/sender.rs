//! The senders of a load: each feeds workflows of its own, by position in a shuffled window, or in order of arrival.

use std::sync::Arc;

use seriatim::Receipt;
use seriatim::error::OperationError;
use seriatim::error::SendError;

use crate::kill::child::Load;
use crate::kill::name::Name;
use crate::kill::name::Ordered;
use crate::kill::output_lines::Role;
use crate::kill::output_lines::say;
use crate::kill::report::Answer;
use crate::kill::report::Report;
use crate::random::Random;

/// Messages sent at once, or shuffled within.
const WINDOW_MAX: u64 = 6;

/// Sends until this process is killed, beginning with the next message of each workflow.
pub(crate) async fn send(load: Arc<Load>, index: u64, mut next: Vec<Name>) {
    let mut random = load.random(index);
    loop {
        let count = 1 + random.below(WINDOW_MAX);
        let Ok(room) = load.room.acquire_many(u32::try_from(count).expect("a small number")).await else {
            return;
        };
        room.forget();
        let at = random.below(next.len() as u64);
        let first = &mut next[usize::try_from(at).expect("a small number")];
        let mut window: Vec<Name> =
            (0..count).map(|offset| Name { number: first.number + offset, ..*first }).collect();
        first.number += count;
        if first.ordered == Ordered::Position {
            shuffle(&mut window, &mut random);
        }
        let is_answered = if random.chance(50) {
            send_batch(&load, window).await
        } else {
            send_singly(&load, window).await
        };
        if !is_answered {
            return;
        }
    }
}

fn shuffle(window: &mut [Name], random: &mut Random) {
    for end in (1..window.len()).rev() {
        let other = random.below(end as u64 + 1);
        window.swap(end, usize::try_from(other).expect("a small number"));
    }
}

async fn send_singly(load: &Load, window: Vec<Name>) -> bool {
    // All of it is meant at once: killed in between, the next process must fill the gaps.
    say(&Report::Sending(window.clone()));
    for name in window {
        if !send_one(load, name).await {
            return false;
        }
    }
    true
}

/// Sends one message. False when the engine cannot answer any more.
pub(crate) async fn send_one(load: &Load, name: Name) -> bool {
    send_batch(load, vec![name]).await
}

/// Sends messages of one workflow in one transaction. False when the engine cannot answer any more.
async fn send_batch(load: &Load, names: Vec<Name>) -> bool {
    let Some(first) = names.first() else { return true };
    let (queue, seed) = (load.queue(first.ordered), load.task.seed);
    say(&Report::Sending(names.clone()));
    let is_hasty = load.task.role == Role::HastySender;
    if is_hasty {
        say(&Report::Sent(names.iter().map(|name| (*name, Answer::Accepted(None))).collect()));
    }
    let sent = match names.len() {
        1 => queue.send(first.message(seed)).await.map(|receipt| vec![receipt]),
        _ => queue.send_batch(names.iter().map(|name| name.message(seed))).await,
    };
    let answers = match answers(sent, names.len()) {
        Ok(answers) => answers,
        Err(why) => {
            load.stop(why);
            return false;
        }
    };
    if !is_hasty {
        say(&Report::Sent(names.into_iter().zip(answers).collect()));
    }
    true
}

fn answers(sent: Result<Vec<Receipt>, SendError>, count: usize) -> Result<Vec<Answer>, String> {
    let answer = |receipt: Receipt| match receipt {
        Receipt::Accepted(number) => Answer::Accepted(Some(number.get())),
        Receipt::Duplicate(number) => Answer::Duplicate(number.get()),
        Receipt::AlreadySettled => Answer::AlreadySettled,
        Receipt::DeadLettered(_) => Answer::Refused,
    };
    match sent {
        Ok(receipts) => Ok(receipts.into_iter().map(answer).collect()),
        Err(OperationError::Unavailable(unavailable)) => Err(unavailable.to_string()),
        Err(_) => Ok(vec![Answer::Refused; count]),
    }
}
