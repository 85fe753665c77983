//! What stored messages cost the others: two queues take turns, one of them with the stored messages.

use std::path::Path;
use std::time::Duration;

use crate::bench::contender::Contender;
use crate::bench::error::BenchError;
use crate::bench::feed::store;
use crate::bench::measure::options;
use crate::bench::meter::Meter;
use crate::bench::outcome::Outcome;
use crate::bench::outcome::Particulars;
use crate::bench::plan::Plan;
use crate::bench::progress::Progress;
use crate::bench::round::Round;

/// How often the two queues take turns; the loss is the median of the rounds.
const ROUNDS: u32 = 3;

/// Rounds before those: what is stored comes to rest, because a store may put off a part of that work.
const ROUNDS_BEFORE: u32 = 7;

/// Measures rounds beside stored messages, each next to one without them.
pub(crate) async fn beside_stored<C: Contender>(
    plan: &Plan,
    folder: &Path,
    progress: &Progress,
) -> Result<Outcome, BenchError> {
    let without = open::<C>(plan, &folder.join("without")).await?;
    let with = open::<C>(plan, &folder.join("with")).await?;
    progress.begin(format!("{} storing", C::NAME), plan.stored_messages());
    store(&with, plan, progress).await?;
    let (mut free, mut burdened) = (Meter::new(), Meter::new());
    let mut losses = Vec::new();
    for round in 0..ROUNDS_BEFORE {
        let plan = Plan { first_workflow: round * plan.workflows, ..*plan };
        Round::new(&without, &plan, progress).send_and_handle().await?;
        Round::new(&with, &plan, progress).send_and_handle().await?;
    }
    for round in ROUNDS_BEFORE..ROUNDS_BEFORE + ROUNDS {
        let plan = Plan { first_workflow: round * plan.workflows, ..*plan };
        let alone = measured(&without, &plan, &mut free, progress).await?;
        let beside = measured(&with, &plan, &mut burdened, progress).await?;
        losses.push(1.0 - alone.as_secs_f64() / beside.as_secs_f64());
    }
    without.close().await?;
    with.close().await?;
    losses.sort_by(f64::total_cmp);
    let messages = plan.messages() * u64::from(ROUNDS);
    let particulars = Particulars {
        stored_messages: Some(plan.stored_messages()),
        without_per_second: Some(messages as f64 / free.used().time.as_secs_f64()),
        loss_percent: Some(100.0 * losses[losses.len() / 2]),
        ..Particulars::default()
    };
    Ok(Outcome::new(plan, C::NAME, messages, &burdened.used(), particulars))
}

async fn open<C: Contender>(plan: &Plan, folder: &Path) -> Result<C, BenchError> {
    let what = format!("make the folder {}", folder.display());
    std::fs::create_dir_all(folder).map_err(BenchError::system(what))?;
    C::open(folder, options(plan)).await
}

async fn measured<C: Contender>(
    contender: &C,
    plan: &Plan,
    meter: &mut Meter,
    progress: &Progress,
) -> Result<Duration, BenchError> {
    let round = Round::new(contender, plan, progress);
    meter.start();
    round.send_and_handle().await?;
    Ok(meter.stop())
}
