//! Sending at a steady pace, whatever the queue answers.

use std::time::Duration;

use seriatim::Clock;
use seriatim::SystemClock;

use crate::bench::body::BodyStamp;
use crate::bench::contender::Contender;
use crate::bench::error::BenchError;
use crate::bench::message::outgoing;
use crate::bench::plan::BenchPlan;

/// Sends the messages of one workflow, each when it is due.
pub(crate) async fn send_paced<C: Contender>(
    contender: C,
    plan: BenchPlan,
    clock: SystemClock,
    workflow: u32,
) -> Result<(), BenchError> {
    for step in 0..plan.each {
        let due = plan.due(workflow, step);
        let is_held_up = clock.elapsed() > due && step > 0;
        sleep_until(&clock, due).await;
        // A send that waited for the one before it was called when it was due, or slow queues would look fast.
        let called = if is_held_up { due } else { clock.elapsed() };
        let stamp = BodyStamp::new(plan.first_workflow + workflow, step, called);
        contender.send(vec![outgoing(&stamp, plan.order)]).await?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a steady pace in real time is what is measured")]
async fn sleep_until(clock: &SystemClock, due: Duration) {
    tokio::time::sleep(due.saturating_sub(clock.elapsed())).await;
}
