//! Measures a workload on a contender.

use std::path::Path;
use std::time::Duration;

use crate::bench::contender::Contender;
use crate::bench::error::BenchError;
use crate::bench::loss::beside_stored;
use crate::bench::loss::with_history;
use crate::bench::meter::RunMeter;
use crate::bench::outcome::BenchOutcome;
use crate::bench::outcome::Particulars;
use crate::bench::plan::BenchPlan;
use crate::bench::progress::BenchProgress;
use crate::bench::purge::beside_purge;
use crate::bench::raw::append_all;
use crate::bench::round::Round;
use crate::bench::spread::Spread;
use crate::bench::workload::Workload;

/// Runs a workload on a contender in an empty folder, then appends the same bytes raw in the same folder.
pub(crate) async fn measure<C: Contender>(
    plan: &BenchPlan,
    folder: &Path,
    progress: &BenchProgress,
) -> Result<BenchOutcome, BenchError> {
    let outcome = match plan.workload {
        Workload::Stuck | Workload::Stored | Workload::Idle => {
            beside_stored::<C>(plan, folder, progress).await?
        }
        Workload::History => with_history::<C>(plan, folder, progress).await?,
        Workload::Purge => beside_purge::<C>(plan, folder, progress).await?,
        _ => alone::<C>(plan, folder, progress).await?,
    };
    progress.end();
    with_raw(outcome, plan, folder)
}

/// Measures one round in a queue of its own.
async fn alone<C: Contender>(
    plan: &BenchPlan,
    folder: &Path,
    progress: &BenchProgress,
) -> Result<BenchOutcome, BenchError> {
    let contender = C::open(folder, plan.options()).await?;
    let mut meter = RunMeter::new();
    let round = Round::new(&contender, plan, progress);
    let particulars = match plan.workload {
        Workload::Backlog | Workload::Growth => sent_then_drained(round, plan, &mut meter).await?,
        Workload::Strict => {
            round.send().await?;
            meter.start();
            round.handle().await?;
            Particulars::default()
        }
        _ => {
            meter.start();
            let spread = Spread::of(round.send_and_handle().await?);
            match plan.workload {
                Workload::Latency => Particulars { latency: spread, ..Particulars::default() },
                _ => Particulars { retry_late: spread, ..Particulars::default() },
            }
        }
    };
    meter.stop();
    contender.close().await?;
    Ok(BenchOutcome::new(plan, C::NAME, plan.messages(), &meter.used(), particulars))
}

/// Sends everything, then drains it, and measures both; the meter is left running.
async fn sent_then_drained<C: Contender>(
    round: Round<'_, C>,
    plan: &BenchPlan,
    meter: &mut RunMeter,
) -> Result<Particulars, BenchError> {
    let per_second = |time: Duration| Some(plan.messages() as f64 / time.as_secs_f64());
    meter.start();
    round.send().await?;
    let sending = meter.lap();
    let handler = round.handler();
    let began = handler.now();
    round.handle().await?;
    let draining = meter.lap() - sending;
    let (sent_per_second, drained_per_second) = (per_second(sending), per_second(draining));
    let last_tenth_to_first = match plan.workload {
        Workload::Growth => handler.last_to_first(began),
        _ => None,
    };
    Ok(Particulars { sent_per_second, drained_per_second, last_tenth_to_first, ..Particulars::default() })
}

/// Adds what a raw append of the same bytes takes.
fn with_raw(mut outcome: BenchOutcome, plan: &BenchPlan, folder: &Path) -> Result<BenchOutcome, BenchError> {
    let appends = append_all(folder, plan.messages(), plan.raw_len(), plan.sync_delay)?;
    let time: Duration = appends.iter().sum();
    outcome.raw_messages_per_second = plan.messages() as f64 / time.as_secs_f64();
    outcome.ratio_to_raw = match (outcome.particulars.latency, Spread::of(appends)) {
        (Some(latency), Some(raw)) => raw.p50_ms / latency.p50_ms,
        _ => outcome.messages_per_second / outcome.raw_messages_per_second,
    };
    Ok(outcome)
}
