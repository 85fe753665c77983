//! The operator's verbs on one workflow, and the way to many.

use seriatim::api::OperateRequest;
use seriatim::api::Verb;
use seriatim::api::views::WorkflowWord;

use crate::cli::arguments::operate::BulkArguments;
use crate::cli::arguments::operate::HoldArguments;
use crate::cli::arguments::operate::PurgeArguments;
use crate::cli::arguments::operate::ResumeArguments;
use crate::cli::arguments::operate::RetryArguments;
use crate::cli::arguments::operate::SkipArguments;
use crate::cli::arguments::operate::UnlockArguments;
use crate::cli::arguments::operate::WorkflowsArguments;
use crate::cli::arguments::target::TargetArgument;
use crate::cli::bulk::Bulk;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::operator_call::OperatorCall;
use crate::cli::operator_call::OperatorVerb;
use crate::cli::purge;

/// Statuses of workflows that do not get on because of the message at their head.
const STUCK: &[WorkflowWord] = &[WorkflowWord::Blocked, WorkflowWord::Held];

const RETRY: OperatorVerb =
    OperatorVerb { verb: Verb::Retry, command: "retry", done: "retried", is_final: false, of_many: STUCK };
const SKIP: OperatorVerb = OperatorVerb { verb: Verb::Skip, command: "skip", done: "skipped", ..RETRY };
const RESUME: OperatorVerb = OperatorVerb {
    verb: Verb::Resume,
    command: "resume",
    done: "resumed",
    of_many: &[WorkflowWord::Held],
    ..RETRY
};
const HOLD: OperatorVerb =
    OperatorVerb { verb: Verb::Hold, command: "hold", done: "held", is_final: false, of_many: &[] };
const UNLOCK: OperatorVerb =
    OperatorVerb { verb: Verb::ReleaseLock, command: "unlock", done: "unlocked", ..HOLD };
const PURGE: OperatorVerb =
    OperatorVerb { verb: Verb::Purge, command: "purge", done: "purged", is_final: true, ..HOLD };
pub(crate) const VOID: OperatorVerb =
    OperatorVerb { verb: Verb::Void, command: "gap void", done: "declared void", ..HOLD };
pub(crate) const SKIP_GAP: OperatorVerb =
    OperatorVerb { verb: Verb::SkipGap, command: "gap skip", done: "moved past its gap", ..HOLD };

pub(crate) async fn retry(arguments: RetryArguments) -> Result<bool, CliFailure> {
    operate(&RETRY, because(arguments.reason), arguments.workflows).await
}

pub(crate) async fn skip(arguments: SkipArguments) -> Result<bool, CliFailure> {
    let SkipArguments { reason, message: sequence_number, workflows } = arguments;
    let operation = OperateRequest { sequence_number, ..because(Some(reason)) };
    operate(&SKIP, operation, workflows).await
}

pub(crate) async fn hold(arguments: HoldArguments) -> Result<bool, CliFailure> {
    operate(&HOLD, because(arguments.reason), arguments.workflows).await
}

pub(crate) async fn resume(arguments: ResumeArguments) -> Result<bool, CliFailure> {
    let ResumeArguments { target, redrive, cause, reason, many, operator, daemon } = arguments;
    let operation = OperateRequest { reason, redrive, cause, ..OperateRequest::default() };
    let bulk = many.held_for(cause);
    on(OperatorCall { verb: &RESUME, operation, operator: &operator, daemon: &daemon }, &target, bulk).await
}

pub(crate) async fn purge(arguments: PurgeArguments) -> Result<bool, CliFailure> {
    let PurgeArguments { reason, workflows } = arguments;
    match &workflows.target {
        TargetArgument::Queue(queue) if workflows.bulk.is_everything() => {
            purge::queue(queue, reason, &workflows.operator, &workflows.daemon).await
        }
        _ => operate(&PURGE, because(Some(reason)), workflows).await,
    }
}

/// Something that is done for a reason.
fn because(reason: Option<String>) -> OperateRequest {
    OperateRequest { reason, ..OperateRequest::default() }
}

async fn operate(
    verb: &OperatorVerb,
    operation: OperateRequest,
    workflows: WorkflowsArguments,
) -> Result<bool, CliFailure> {
    let WorkflowsArguments { target, bulk, operator, daemon } = workflows;
    on(OperatorCall { verb, operation, operator: &operator, daemon: &daemon }, &target, bulk).await
}

pub(crate) async fn unlock(arguments: UnlockArguments) -> Result<bool, CliFailure> {
    let UnlockArguments { target, reason, operator, daemon } = arguments;
    let operation = because(reason);
    OperatorCall { verb: &UNLOCK, operation, operator: &operator, daemon: &daemon }.on_one(&target).await
}

/// Does it to the workflow that is named, or to all that match.
async fn on(
    call: OperatorCall<'_>,
    target: &TargetArgument,
    bulk: BulkArguments,
) -> Result<bool, CliFailure> {
    match (target, bulk.filter.all) {
        (TargetArgument::Workflow(workflow), false) => call.on_one(workflow).await,
        (TargetArgument::Queue(queue), true) => {
            let remote = connect(call.daemon)?;
            Bulk::new(remote, queue.clone(), call, bulk).run().await
        }
        (TargetArgument::Queue(queue), false) => Err(CliFailure::Argument(format!(
            "{} {queue}: name a workflow as {queue}/WORKFLOW, or add --all",
            call.verb.command
        ))),
        (_, _) => Err(CliFailure::Argument(format!(
            "{} {target}: it takes QUEUE/WORKFLOW, or QUEUE with --all",
            call.verb.command
        ))),
    }
}
