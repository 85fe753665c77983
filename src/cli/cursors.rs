//! Where the workflows of an export stand: positions before it were settled where they were exported, and are waited for nowhere.

use serde::Deserialize;
use serde::Serialize;
use seriatim::api::OperateRequest;
use seriatim::api::Verb;
use seriatim::api::options::OrderWord;
use seriatim::api::views::WorkflowEnvelope;
use seriatim::api::views::WorkflowWord;
use seriatim::queue::HoldKind;
use seriatim::remote::Remote;
use seriatim::remote::RemoteError;

use crate::cli::limits;
use crate::cli::out::remark;
use crate::cli::word::counted;

/// Why positions are declared void, for the record.
const REASON: &str = "import: it was settled where the workflow was exported";

/// A line of an export that says where a workflow stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkflowCursor {
    /// The workflow.
    pub(crate) workflow_id: String,
    /// The next position to settle.
    pub(crate) next_position: u64,
}

/// Where the workflows of a queue stand.
#[derive(Default)]
pub(crate) struct ExportCursors {
    /// Those of which nothing is stored before that.
    pub(crate) plain: Vec<WorkflowCursor>,
    /// Those of which messages are set aside: they have to be there before places are declared void around them.
    pub(crate) around: Vec<WorkflowCursor>,
}

/// Where the workflows of a queue stand that have settled a position; none in another order than by position.
///
/// # Errors
/// [`RemoteError`].
pub(crate) async fn cursors_of(remote: &Remote, queue: &str) -> Result<ExportCursors, RemoteError> {
    // Who may look at messages may ask: an export without cursors would have what was settled be waited for.
    let view = remote.queue(queue).await?;
    let (mut cursors, mut after) = (ExportCursors::default(), None);
    if view.options.order != Some(OrderWord::Position) {
        return Ok(cursors);
    }
    if view.cursors > 0 {
        remark(format!(
            "where {} stand that have long been idle is not exported: what is sent to them where this is imported waits for all they have settled",
            counted(view.cursors, "workflow")
        ));
    }
    loop {
        let page = remote.workflows(queue, &[], after.as_deref(), limits::PAGE).await?;
        for view in page.workflows {
            let (Some(workflow_id), Some(next_position @ 2..)) = (view.workflow_id, view.next_position)
            else {
                continue;
            };
            let cursor = WorkflowCursor { workflow_id, next_position };
            match view.set_aside {
                0 => cursors.plain.push(cursor),
                _ => cursors.around.push(cursor),
            }
        }
        after = page.after;
        if after.is_none() {
            return Ok(cursors);
        }
    }
}

/// Has a workflow wait for no position before a cursor. One of which nothing is known is held meanwhile, which makes it known; a hold
/// that an import has left which was broken off ends, too.
///
/// # Errors
/// [`RemoteError`].
pub(crate) async fn set_cursor(
    remote: &Remote,
    queue: &str,
    cursor: &WorkflowCursor,
) -> Result<(), RemoteError> {
    let WorkflowCursor { workflow_id: id, next_position: end } = cursor;
    let known = remote.workflow(queue, id).await?.filter(|known| known.status != WorkflowWord::Ended);
    let is_held = known.as_ref().is_some_and(is_held_by_import);
    let begin = known.as_ref().and_then(|known| known.next_position).unwrap_or(1);
    if begin >= *end && !is_held {
        return Ok(());
    }
    let request = OperateRequest { reason: Some(REASON.to_owned()), ..OperateRequest::default() };
    if known.is_none() {
        remote.operate(queue, id, Verb::Hold, &request).await?;
    }
    let voided = void_before(remote, queue, cursor, begin, &request).await;
    if known.is_none() || is_held {
        let resume = OperateRequest { cause: Some(HoldKind::Operator), ..OperateRequest::default() };
        remote.operate(queue, id, Verb::Resume, &resume).await?;
    }
    voided
}

/// Whether a workflow is held because an import was broken off.
fn is_held_by_import(workflow: &WorkflowEnvelope) -> bool {
    workflow.holds.iter().any(|hold| hold.cause == HoldKind::Operator && hold.reason == REASON)
}

/// Declares void what is missing before a cursor.
async fn void_before(
    remote: &Remote,
    queue: &str,
    cursor: &WorkflowCursor,
    begin: u64,
    request: &OperateRequest,
) -> Result<(), RemoteError> {
    let stored = stored_before(remote, queue, cursor, begin).await?;
    for (from, to) in missing(begin, cursor.next_position, &stored) {
        let range = OperateRequest { from: Some(from), to: Some(to), ..request.clone() };
        match remote.operate(queue, &cursor.workflow_id, Verb::Void, &range).await {
            // An earlier run has declared it void.
            Err(RemoteError::Problem(problem)) if problem.code == "not_missing" => {}
            voided => drop(voided?),
        }
    }
    Ok(())
}

/// The positions before a cursor that are stored already, in their order.
async fn stored_before(
    remote: &Remote,
    queue: &str,
    cursor: &WorkflowCursor,
    mut from: u64,
) -> Result<Vec<u64>, RemoteError> {
    let mut stored = Vec::new();
    loop {
        let page = remote.workflow_messages(queue, &cursor.workflow_id, from, limits::EXPORT_PAGE).await?;
        let positions = page.messages.iter().filter_map(|message| message.position);
        stored.extend(positions.filter(|position| *position < cursor.next_position));
        match page.from.filter(|next| *next > from && *next < cursor.next_position) {
            Some(next) => from = next,
            None => return Ok(stored),
        }
    }
}

/// The ranges from `begin` to before `end` without what is stored.
fn missing(begin: u64, end: u64, stored: &[u64]) -> Vec<(u64, u64)> {
    let (mut ranges, mut from) = (Vec::new(), begin);
    for position in stored.iter().copied().chain([end]) {
        if position > from {
            ranges.push((from, position - 1));
        }
        from = from.max(position + 1);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_stands_around_what_is_stored() {
        assert_eq!(missing(1, 5, &[]), [(1, 4)]);
        assert_eq!(missing(3, 9, &[4, 5, 8]), [(3, 3), (6, 7)]);
        assert_eq!(missing(3, 5, &[3, 4]), []);
    }
}
