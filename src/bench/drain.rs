//! The tasks that receive, handle and settle.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::bench::contender::Contender;
use crate::bench::error::BenchError;
use crate::bench::handler::BenchHandler;
use crate::bench::message::MessageEnd;
use crate::bench::plan::BenchPlan;

/// How long nothing at all may be settled before a run is given up.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Receives and settles in as many tasks as the plan says.
pub(crate) async fn drain_in_tasks<C: Contender>(
    contender: C,
    plan: BenchPlan,
    handler: Arc<BenchHandler>,
) -> Result<(), BenchError> {
    let mut tasks = JoinSet::new();
    for _ in 0..plan.receivers {
        tasks.spawn(drain(contender.clone(), plan, handler.clone()));
    }
    all_ended(tasks).await
}

/// Waits for all tasks; the first failure ends the others.
pub(crate) async fn all_ended(mut tasks: JoinSet<Result<(), BenchError>>) -> Result<(), BenchError> {
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(BenchError::system("run a task"))??;
    }
    Ok(())
}

/// Waits until all messages of the run are settled.
#[expect(
    clippy::disallowed_methods,
    reason = "what hangs for a minute is to end, and there is no receive that could say so"
)]
pub(crate) async fn until_all_settled(handler: &BenchHandler) -> Result<(), BenchError> {
    loop {
        let before = handler.settled_count();
        tokio::select! {
            biased;
            () = handler.all_settled() => return Ok(()),
            () = tokio::time::sleep(TIMEOUT) => {}
        }
        if handler.settled_count() == before {
            return Err(BenchError::Stalled(TIMEOUT.as_secs(), handler.missing()));
        }
    }
}

/// Receives and settles until all messages of the run are settled. Before a batch is settled, the next is asked for
/// already: what the settling frees is handed out in the same commit.
async fn drain<C: Contender>(
    contender: C,
    plan: BenchPlan,
    handler: Arc<BenchHandler>,
) -> Result<(), BenchError> {
    let mut next = receive(&contender, &plan, &handler).await?;
    while let Some(batch) = next {
        let bodies = C::bodies(&batch);
        let verdicts = handler.handle(&bodies).await?;
        let completed = verdicts.iter().filter(|verdict| **verdict == MessageEnd::Complete).count();
        let settling = async {
            contender.settle(batch, verdicts).await?;
            handler.settled(completed as u64);
            Ok(())
        };
        let receiving = receive(&contender, &plan, &handler);
        (next, ()) = tokio::try_join!(receiving, settling)?;
    }
    Ok(())
}

/// The next batch; `None` when all is settled.
async fn receive<C: Contender>(
    contender: &C,
    plan: &BenchPlan,
    handler: &BenchHandler,
) -> Result<Option<C::Batch>, BenchError> {
    loop {
        let before = handler.settled_count();
        let batch = tokio::select! {
            biased;
            () = handler.all_settled() => return Ok(None),
            batch = contender.receive(plan.take, TIMEOUT) => batch?,
        };
        if !C::bodies(&batch).is_empty() {
            return Ok(Some(batch));
        }
        if handler.settled_count() == before {
            return Err(BenchError::Stalled(TIMEOUT.as_secs(), handler.missing()));
        }
    }
}
