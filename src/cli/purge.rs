//! Purges of a queue: of everything it stores, or of its dead letters.

use seriatim::api::PurgeRequest;
use seriatim::api::PurgeResponse;

use crate::cli::arguments::daemon::DaemonArguments;
use crate::cli::arguments::operate::OperatorArguments;
use crate::cli::confirm::confirm;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::out::Stdout;
use crate::cli::word::counted;

/// Removes everything a queue stores for good.
pub(crate) async fn queue(
    queue: &str,
    reason: String,
    operator: &OperatorArguments,
    daemon: &DaemonArguments,
) -> Result<bool, CliFailure> {
    let remote = connect(daemon)?;
    let call = async |purge: PurgeRequest| {
        remote.purge_queue(queue, &purge).await.map_err(CliFailure::to(format!("purge {queue}")))
    };
    run("message", queue, reason, operator, daemon, call).await
}

/// Removes all dead letters of a queue for good.
pub(crate) async fn dead_letters(
    queue: &str,
    reason: String,
    operator: &OperatorArguments,
    daemon: &DaemonArguments,
) -> Result<bool, CliFailure> {
    let remote = connect(daemon)?;
    let call = async |purge: PurgeRequest| {
        let purged = remote.purge_dead_letters(queue, &purge).await;
        purged.map_err(CliFailure::to(format!("purge the dead letters of {queue}")))
    };
    run("dead letter", queue, reason, operator, daemon, call).await
}

/// Counts, asks, and removes.
async fn run(
    noun: &str,
    queue: &str,
    reason: String,
    operator: &OperatorArguments,
    daemon: &DaemonArguments,
    call: impl AsyncFn(PurgeRequest) -> Result<PurgeResponse, CliFailure>,
) -> Result<bool, CliFailure> {
    let out = Stdout::new(daemon.json);
    let dry_run = operator.dry_run;
    if !dry_run && !operator.yes {
        let would = call(PurgeRequest { reason: Some(reason.clone()), dry_run: true }).await?;
        confirm(operator, &format!("remove {} of {queue} for good?", counted(would.purged, noun)))?;
    }
    let outcome = call(PurgeRequest { reason: Some(reason), dry_run }).await?;
    out.json(&outcome)?;
    let counted = counted(outcome.purged, noun);
    out.say(match dry_run {
        true => format!("{counted} of {queue} would be removed (a dry run: nothing was changed)"),
        false => format!("{counted} of {queue} removed for good"),
    })?;
    Ok(true)
}
