//! What a purge costs the others: messages are removed while others are sent and handled at a steady pace.

use std::path::Path;

use seriatim::Clock;
use seriatim::SystemClock;

use crate::bench::contender::Contender;
use crate::bench::error::BenchError;
use crate::bench::feed::store;
use crate::bench::feed::stored_workflow;
use crate::bench::meter::RunMeter;
use crate::bench::outcome::BenchOutcome;
use crate::bench::outcome::Particulars;
use crate::bench::plan::BenchPlan;
use crate::bench::progress::BenchProgress;
use crate::bench::round::Round;
use crate::bench::spread::Spread;

/// Measures the latency of a round while what is stored beside is purged.
pub(crate) async fn beside_purge<C: Contender>(
    plan: &BenchPlan,
    folder: &Path,
    progress: &BenchProgress,
) -> Result<BenchOutcome, BenchError> {
    let contender = C::open(folder, plan.options()).await?;
    progress.begin(format!("{} storing", C::NAME), plan.stored_messages());
    store(&contender, plan, progress).await?;
    let clock = SystemClock::default();
    let mut meter = RunMeter::new();
    meter.start();
    let round = Round::new(&contender, plan, progress);
    let purging = async {
        let purged = contender.purge(stored_workflow(0)).await?;
        Ok((purged, clock.elapsed()))
    };
    let (delays, (purged, time)) = tokio::try_join!(round.send_and_handle(), purging)?;
    meter.stop();
    contender.close().await?;
    if purged != plan.stored_messages() {
        return Err(BenchError::Broken(format!("{purged} of {} were purged", plan.stored_messages())));
    }
    let particulars = Particulars {
        latency: Spread::of(delays),
        stored_messages: Some(purged),
        purged_per_second: Some(purged as f64 / time.as_secs_f64()),
        ..Particulars::default()
    };
    Ok(BenchOutcome::new(plan, C::NAME, plan.messages(), &meter.used(), particulars))
}
