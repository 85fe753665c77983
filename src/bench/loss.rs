//! What something costs a queue: two queues take turns, one of them with stored messages, or with a history.

use std::path::Path;
use std::time::Duration;

use crate::bench::contender::Contender;
use crate::bench::error::BenchError;
use crate::bench::feed::store;
use crate::bench::meter::RunMeter;
use crate::bench::outcome::BenchOutcome;
use crate::bench::outcome::Particulars;
use crate::bench::plan::BenchPlan;
use crate::bench::plan::Options;
use crate::bench::progress::BenchProgress;
use crate::bench::round::Round;
use crate::bench::workload::Workload;

/// How the two queues take turns.
#[derive(Clone, Copy)]
struct Turns {
    /// Rounds that are not measured: a store may put off a part of its work.
    before: u32,
    /// Rounds whose median is the loss.
    measured: u32,
}

/// What is stored comes to rest in the rounds before.
const BESIDE_STORED: Turns = Turns { before: 7, measured: 3 };

/// What is stored has come to rest in the minute before.
const BESIDE_IDLE: Turns = Turns { before: 2, measured: 5 };

/// How long nothing is asked after so many messages were stored as are stored usually.
const REST: Duration = Duration::from_secs(60);

/// What is remembered has reached its bound after the rounds before.
const WITH_HISTORY: Turns = Turns { before: 2, measured: 5 };

/// Measures rounds beside stored messages, each next to one without them.
pub(crate) async fn beside_stored<C: Contender>(
    plan: &BenchPlan,
    folder: &Path,
    progress: &BenchProgress,
) -> Result<BenchOutcome, BenchError> {
    let without: C = open(plan.options(), &folder.join("without")).await?;
    let with: C = open(plan.options(), &folder.join("with")).await?;
    progress.begin(format!("{} storing", C::NAME), plan.stored_messages());
    store(&with, plan, progress).await?;
    let turns = match plan.workload {
        Workload::Idle => {
            rest(plan).await;
            BESIDE_IDLE
        }
        _ => BESIDE_STORED,
    };
    let mut outcome = compare(plan, turns, (without, with), progress).await?;
    outcome.particulars.stored_messages = Some(plan.stored_messages());
    Ok(outcome)
}

/// Asks nothing for a minute; a small run, which stores less, rests less.
#[expect(clippy::disallowed_methods, reason = "a store that is left alone is what is measured")]
async fn rest(plan: &BenchPlan) {
    let usual = BenchPlan::new(plan.workload, None).stored_messages();
    tokio::time::sleep(REST.mul_f64(plan.stored_messages() as f64 / usual as f64)).await;
}

/// Measures rounds of a queue that remembers how its messages ended, each next to one of a queue that does not.
pub(crate) async fn with_history<C: Contender>(
    plan: &BenchPlan,
    folder: &Path,
    progress: &BenchProgress,
) -> Result<BenchOutcome, BenchError> {
    let without: C = open(plan.options(), &folder.join("without")).await?;
    let with: C = open(Options { has_history: true, ..plan.options() }, &folder.join("with")).await?;
    compare(plan, WITH_HISTORY, (without, with), progress).await
}

/// Lets a queue without and one with the burden take turns.
async fn compare<C: Contender>(
    plan: &BenchPlan,
    turns: Turns,
    (without, with): (C, C),
    progress: &BenchProgress,
) -> Result<BenchOutcome, BenchError> {
    let (mut free, mut burdened) = (RunMeter::new(), RunMeter::new());
    let mut losses = Vec::new();
    for round in 0..turns.before {
        let plan = BenchPlan { first_workflow: round * plan.workflows, ..*plan };
        Round::new(&without, &plan, progress).send_and_handle().await?;
        Round::new(&with, &plan, progress).send_and_handle().await?;
    }
    for round in turns.before..turns.before + turns.measured {
        let plan = BenchPlan { first_workflow: round * plan.workflows, ..*plan };
        let alone = measured(&without, &plan, &mut free, progress).await?;
        let beside = measured(&with, &plan, &mut burdened, progress).await?;
        losses.push(1.0 - alone.as_secs_f64() / beside.as_secs_f64());
    }
    without.close().await?;
    with.close().await?;
    losses.sort_by(f64::total_cmp);
    let messages = plan.messages() * u64::from(turns.measured);
    let particulars = Particulars {
        without_per_second: Some(messages as f64 / free.used().time.as_secs_f64()),
        loss_percent: Some(100.0 * losses[losses.len() / 2]),
        ..Particulars::default()
    };
    Ok(BenchOutcome::new(plan, C::NAME, messages, &burdened.used(), particulars))
}

async fn open<C: Contender>(options: Options, folder: &Path) -> Result<C, BenchError> {
    let what = format!("make the folder {}", folder.display());
    std::fs::create_dir_all(folder).map_err(BenchError::system(what))?;
    C::open(folder, options).await
}

async fn measured<C: Contender>(
    contender: &C,
    plan: &BenchPlan,
    meter: &mut RunMeter,
    progress: &BenchProgress,
) -> Result<Duration, BenchError> {
    let round = Round::new(contender, plan, progress);
    meter.start();
    round.send_and_handle().await?;
    Ok(meter.stop())
}
