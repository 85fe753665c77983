//! The receivers of a load: they take messages in every way there is.

use std::sync::Arc;
use std::time::Duration;

use seriatim::Delivery;
use seriatim::Run;
use seriatim::Unavailable;
use seriatim::error::OperationError;
use seriatim::error::ReceiveError;
use seriatim::error::ReceiveRefusal;

use crate::kill::child::LOCK;
use crate::kill::child::Load;
use crate::kill::name::Ordered;
use crate::kill::output_lines;
use crate::kill::settler;
use crate::random::Random;

/// How long one receive waits.
const WAIT: Duration = Duration::from_millis(3);

/// Most messages taken at once.
const TAKEN_MAX: u64 = 5;

/// Receives and settles until this process is killed.
pub(crate) async fn receive(load: Arc<Load>, index: u64) {
    let mut random = load.random(100 + index);
    loop {
        let ordered = random.pick(&Ordered::BOTH);
        let worked = match random.below(10) {
            0..=3 => receive_many(&load, ordered, 1, &mut random).await,
            4..=5 => receive_many(&load, ordered, 2 + random.below(TAKEN_MAX - 1), &mut random).await,
            6..=8 => receive_run(&load, ordered, 1 + random.below(TAKEN_MAX), &mut random).await,
            _ => fetch(&load, &mut random).await,
        };
        if let Err(unavailable) = worked {
            return load.stop(unavailable);
        }
    }
}

async fn receive_many(
    load: &Load,
    ordered: Ordered,
    max: u64,
    random: &mut Random,
) -> Result<(), Unavailable> {
    let max = usize::try_from(max).expect("a small number");
    let mut deliveries = answered(load.queue(ordered).receive_many(max, WAIT).await)?;
    deliveries.iter().for_each(|delivery| output_lines::say_delivered(delivery, lock_ms()));
    if deliveries.len() > 1 && random.chance(50) {
        return settler::complete_together(load, ordered, deliveries).await;
    }
    for delivery in &mut deliveries {
        settler::settle(load, delivery, random).await?;
    }
    Ok(())
}

/// Fetches something that was set aside.
async fn fetch(load: &Load, random: &mut Random) -> Result<(), Unavailable> {
    match take_aside(load, random).await? {
        Some(mut delivery) => settler::settle(load, &mut delivery, random).await,
        None => Ok(()),
    }
}

/// Takes something that was set aside, and says so. What its workflow has a holder for is tried again later; what has
/// come back by itself is not.
pub(crate) async fn take_aside(load: &Load, random: &mut Random) -> Result<Option<Delivery>, Unavailable> {
    let Some((ordered, number)) = load.pick_aside(random) else { return Ok(None) };
    let mut fetched = match load.queue(ordered).receive_deferred(&[number]).await {
        Ok(fetched) => fetched,
        Err(OperationError::Unavailable(unavailable)) => return Err(unavailable),
        Err(error) => {
            if error.refusal() == Some(&ReceiveRefusal::WorkflowLocked) {
                load.set_aside(ordered, number);
            }
            return Ok(None);
        }
    };
    let delivery = fetched.pop();
    delivery.iter().for_each(|delivery| output_lines::say_delivered(delivery, lock_ms()));
    Ok(delivery)
}

async fn receive_run(
    load: &Load,
    ordered: Ordered,
    max: u64,
    random: &mut Random,
) -> Result<(), Unavailable> {
    let max = usize::try_from(max).expect("a small number");
    let Some(mut run) = take_run(load, ordered, max, WAIT).await? else { return Ok(()) };
    if run.messages().len() > 1 && random.chance(30) {
        settler::complete_first(load, &mut run, 1).await?;
    }
    if random.chance(60) {
        let count = run.messages().len();
        return settler::complete_first(load, &mut run, count).await;
    }
    settler::end_run(load, &mut run, random).await
}

/// Takes a run, and says so.
pub(crate) async fn take_run(
    load: &Load,
    ordered: Ordered,
    max: usize,
    wait: Duration,
) -> Result<Option<Run>, Unavailable> {
    let queue = load.queue(ordered);
    let run = answered(queue.receive_run(max, wait).await)?;
    if let Some(run) = &run {
        let (token, until) = (run.lock_token(), run.locked_until());
        output_lines::say_received(queue.name(), token, until, run.messages(), lock_ms());
    }
    Ok(run)
}

/// What a receive brought. A queue that is there refuses none.
fn answered<T>(received: Result<T, ReceiveError>) -> Result<T, Unavailable> {
    match received {
        Ok(received) => Ok(received),
        Err(OperationError::Unavailable(unavailable)) => Err(unavailable),
        Err(error) => panic!("{error}"),
    }
}

fn lock_ms() -> u64 {
    u64::try_from(LOCK.as_millis()).expect("a minute")
}
