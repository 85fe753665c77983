//! `seriatim cancel` and `seriatim reschedule`: what is done to a message before its instant.

use serde_json::json;

use crate::cli::arguments::send::CancelArguments;
use crate::cli::arguments::send::RescheduleArguments;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::moment::LocalTime;
use crate::cli::out::Stdout;

/// Cancels a scheduled message.
pub(crate) async fn cancel(arguments: CancelArguments) -> Result<bool, CliFailure> {
    let CancelArguments { target, void, daemon } = arguments;
    let remote = connect(&daemon)?;
    let cancelled = match void {
        true => remote.cancel_and_void(&target.queue, target.number).await,
        false => remote.cancel(&target.queue, target.number).await,
    };
    cancelled.map_err(CliFailure::to(format!("cancel {target}")))?;
    let out = Stdout::new(daemon.json);
    out.json(&json!({ "cancelled": target.number, "void": void }))?;
    out.say(match void {
        true => format!("{target} is cancelled; a place it had in its workflow is settled"),
        false => format!("{target} is cancelled; a place it had in its workflow is free again"),
    })?;
    Ok(true)
}

/// Lets a scheduled message come at another instant.
pub(crate) async fn reschedule(arguments: RescheduleArguments) -> Result<bool, CliFailure> {
    let RescheduleArguments { target, at, daemon } = arguments;
    let rescheduled = connect(&daemon)?.reschedule(&target.queue, target.number, at).await;
    rescheduled.map_err(CliFailure::to(format!("reschedule {target}")))?;
    let out = Stdout::new(daemon.json);
    out.json(&json!({ "rescheduled": target.number, "at": at }))?;
    let present = LocalTime::here();
    out.say(match present.is_past(at) {
        true => format!("{target} is ready: {} has passed", present.full(at)),
        false => format!("{target} comes at {}", present.full(at)),
    })?;
    Ok(true)
}
