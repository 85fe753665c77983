//! The supervisor: starts the engine's process, kills it on the way, starts it again, and judges the end.

use std::path::Path;

use seriatim::Clock;
use seriatim::SystemClock;

use crate::demo::git::PathChange;
use crate::demo::git::Repository;
use crate::demo::git::arrival_order;
use crate::demo::git::check_workflow_ids;
use crate::demo::git::count_early;
use crate::demo::replay::error::ReplayError;
use crate::demo::replay::plan::FILE_NAME;
use crate::demo::replay::plan::Handling;
use crate::demo::replay::plan::NATS_FOLDER;
use crate::demo::replay::plan::ReplayPlan;
use crate::demo::replay::progress::ReplayOutcome;
use crate::demo::replay::report::Report;
use crate::demo::replay::story::Story;
#[cfg(feature = "cluster")]
use crate::demo::replay::supervise_cluster;
use crate::demo::replay::supervision::Supervision;

/// Replays a history; true when every promise was kept.
pub(crate) fn replay(plan: &ReplayPlan) -> Result<bool, ReplayError> {
    let repository = Repository::open(&plan.repository)?;
    let changes = repository.changes()?;
    check_workflow_ids(changes.iter().map(|change| &change.path[..]))?;
    let early = count_early(&changes, &order_of(plan, &changes));
    let clock = SystemClock::default();
    prepare(&plan.data)?;
    let mut story = Story::begin(plan, changes.len(), early.messages);
    let mut supervision = Supervision {
        plan,
        head: repository.head(),
        data: &plan.data,
        changes: changes.len() as u64,
        crashes: 0,
        deferred_max: 0,
    };
    let outcome = match plan.cluster {
        true => run_on_cluster(&mut supervision, &mut story)?,
        false => supervision.run(&mut story)?,
    };
    let report = Report::new(
        &outcome,
        changes.len() as u64,
        early.messages as u64,
        supervision.deferred_max,
        supervision.crashes,
        clock.elapsed(),
    );
    story.end(&report);
    Ok(report.is_right())
}

#[cfg(feature = "cluster")]
fn run_on_cluster(
    supervision: &mut Supervision<'_>,
    story: &mut Story,
) -> Result<ReplayOutcome, ReplayError> {
    supervise_cluster::run(supervision, story)
}

#[cfg(not(feature = "cluster"))]
fn run_on_cluster(_: &mut Supervision<'_>, _: &mut Story) -> Result<ReplayOutcome, ReplayError> {
    Err(ReplayError::NoCluster)
}

/// The order in which the messages arrive.
fn order_of(plan: &ReplayPlan, changes: &[PathChange]) -> Vec<usize> {
    match plan.handling {
        Handling::RetryAtBack => (0..changes.len()).collect(),
        Handling::Ordered | Handling::AsTheyArrive => arrival_order(changes),
    }
}

/// Sees to it that the folder of the engine's file is there, and that no replay has used it before.
fn prepare(folder: &Path) -> Result<(), ReplayError> {
    let making = format!("make the folder {}", folder.display());
    std::fs::create_dir_all(folder).map_err(ReplayError::system(making))?;
    match folder.join(FILE_NAME).exists() || folder.join(NATS_FOLDER).exists() {
        true => Err(ReplayError::DataInUse(folder.to_owned())),
        false => Ok(()),
    }
}
