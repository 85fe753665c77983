//! The tasks that send.

use std::time::Duration;

use seriatim::Clock;
use seriatim::SystemClock;
use tokio::task::JoinSet;

use crate::bench::body::BodyStamp;
use crate::bench::contender::Contender;
use crate::bench::error::BenchError;
use crate::bench::message::outgoing;
use crate::bench::message::workflow_name;
use crate::bench::pace::send_paced;
use crate::bench::plan::BenchPlan;
use crate::bench::progress::BenchProgress;

/// Where the workflows begin that are only stored: far behind all that are handled.
const STORED_FROM: u32 = 1 << 30;
/// How many of those are sent at once.
const STORED_LEN: usize = 1_024;

/// Starts the senders of a run: each has workflows of its own, so that their order is its order.
pub(crate) fn feed<C: Contender>(
    contender: &C,
    plan: &BenchPlan,
    clock: SystemClock,
    tasks: &mut JoinSet<Result<(), BenchError>>,
) {
    for sender in 0..plan.senders {
        match plan.workload.is_paced() {
            true => tasks.spawn(send_paced(contender.clone(), *plan, clock, sender)),
            false => tasks.spawn(send(contender.clone(), *plan, clock, sender)),
        };
    }
}

/// Sends what one sender has to, step by step through its workflows.
async fn send<C: Contender>(
    contender: C,
    plan: BenchPlan,
    clock: SystemClock,
    sender: u32,
) -> Result<(), BenchError> {
    let mut batch = Vec::with_capacity(plan.send_len);
    for step in 0..plan.each {
        for workflow in (sender..plan.workflows).step_by(plan.senders as usize) {
            let workflow = plan.first_workflow + workflow;
            let stamp = BodyStamp::new(workflow, plan.arrives(workflow, step), clock.elapsed());
            batch.push(outgoing(&stamp, plan.order));
            if batch.len() == plan.send_len {
                contender.send(std::mem::take(&mut batch)).await?;
            }
        }
    }
    if batch.is_empty() { Ok(()) } else { contender.send(batch).await }
}

/// Stores messages that nobody can receive, because the first of each workflow is missing.
pub(crate) async fn store<C: Contender>(
    contender: &C,
    plan: &BenchPlan,
    progress: &BenchProgress,
) -> Result<(), BenchError> {
    let (workflows, each) = plan.stored;
    let mut batch = Vec::with_capacity(STORED_LEN);
    for index in 1..=each {
        for workflow in 0..workflows {
            batch.push(outgoing(&BodyStamp::new(STORED_FROM + workflow, index, Duration::ZERO), plan.order));
            if batch.len() == STORED_LEN {
                contender.send(std::mem::take(&mut batch)).await?;
                progress.go_on(STORED_LEN as u64);
            }
        }
    }
    if batch.is_empty() { Ok(()) } else { contender.send(batch).await }
}

/// The name of a workflow that is only stored.
pub(crate) fn stored_workflow(workflow: u32) -> String {
    workflow_name(STORED_FROM + workflow)
}
