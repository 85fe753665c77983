//! `seriatim gap`: what is missing in a workflow, and what is done about it.

use serde_json::json;
use seriatim::api::OperateRequest;

use crate::cli::arguments::daemon::DaemonArguments;
use crate::cli::arguments::operate::GapArguments;
use crate::cli::arguments::operate::GapVerb;
use crate::cli::arguments::target::WorkflowTarget;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::moment::LocalTime;
use crate::cli::next::gap_text;
use crate::cli::operate::SKIP_GAP;
use crate::cli::operate::VOID;
use crate::cli::operator_call::OperatorCall;
use crate::cli::out::Stdout;
use crate::cli::word::counted;

/// Shows a gap, declares it void, or skips it.
pub(crate) async fn run(arguments: GapArguments) -> Result<bool, CliFailure> {
    let daemon = &arguments.daemon;
    match arguments.what {
        GapVerb::Show { target } => show(&target, daemon).await,
        GapVerb::Void { target, positions, reason, operator } => {
            let (from, to) = (Some(positions.from), Some(positions.to));
            let operation = OperateRequest { reason: Some(reason), from, to, ..OperateRequest::default() };
            OperatorCall { verb: &VOID, operation, operator: &operator, daemon }.on_one(&target).await
        }
        GapVerb::Skip { target, reason, operator } => {
            let operation = OperateRequest { reason: Some(reason), ..OperateRequest::default() };
            OperatorCall { verb: &SKIP_GAP, operation, operator: &operator, daemon }.on_one(&target).await
        }
    }
}

async fn show(target: &WorkflowTarget, daemon: &DaemonArguments) -> Result<bool, CliFailure> {
    let out = Stdout::new(daemon.json);
    let remote = connect(daemon)?;
    let workflow = remote.workflow(&target.queue, &target.workflow_id).await;
    let workflow = workflow.map_err(CliFailure::to(format!("show the gap of {target}")))?;
    let Some(workflow) = workflow else {
        return Err(CliFailure::Refused(format!("show the gap of {target}: nothing is known of it")));
    };
    let WorkflowTarget { queue, workflow_id } = target;
    let waiting = workflow.early;
    out.json(
        &json!({ "queue": queue, "workflow_id": workflow_id, "gap": workflow.gap, "waiting": waiting }),
    )?;
    let Some(gap) = &workflow.gap else {
        out.say(format!("{target} has no gap"))?;
        return Ok(true);
    };
    let present = LocalTime::here();
    let (waiting, since) = (counted(waiting, "message"), present.full(gap.since));
    out.say(format!("{target} has a gap; behind it: {waiting}, since {since}"))?;
    out.say(format!("next: {}", gap_text(Some(gap), &present)))?;
    Ok(true)
}
