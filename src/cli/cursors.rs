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

/// The code of a refusal to declare void what is not missing.
const NOT_MISSING: &str = "not_missing";

/// A line of an export that says where a workflow stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkflowCursor {
    /// The workflow.
    pub(crate) workflow_id: String,
    /// The next position to settle.
    pub(crate) next_position: u64,
    /// The first and the last position of each range behind it that is settled already, or given up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) void: Vec<(u64, u64)>,
}

impl WorkflowCursor {
    /// Where a workflow stands, if there is something that is not to be waited for.
    fn of(workflow: &WorkflowEnvelope) -> Option<WorkflowCursor> {
        let (workflow_id, next_position) = (workflow.workflow_id.clone()?, workflow.next_position?);
        let void = workflow.settled_ahead.clone();
        let says_something = next_position > 1 || !void.is_empty();
        says_something.then_some(WorkflowCursor { workflow_id, next_position, void })
    }

    /// The ranges that are not to be waited for.
    fn settled(&self) -> impl Iterator<Item = (u64, u64)> {
        std::iter::once((1, self.next_position.saturating_sub(1))).chain(self.void.iter().copied())
    }
}

/// Where the workflows of a queue stand.
#[derive(Default)]
pub(crate) struct ExportCursors {
    /// Those of which nothing is stored before that.
    pub(crate) plain: Vec<WorkflowCursor>,
    /// Those of which messages are set aside: they have to be there before places are declared void around them.
    pub(crate) around: Vec<WorkflowCursor>,
}

/// What of workflows no line of an export says.
#[derive(Default)]
struct UnsaidCount {
    states: u64,
    operator_holds: u64,
    /// Workflows with as many ranges settled ahead as a look shows, or more.
    cut: u64,
}

/// Where the workflows of a queue stand that have settled a position; none in another order than by position. What else would have
/// to be known of workflows is counted, and remarked.
///
/// # Errors
/// [`RemoteError`].
pub(crate) async fn cursors_of(remote: &Remote, queue: &str) -> Result<ExportCursors, RemoteError> {
    // Who may look at messages may ask: an export without cursors would have what was settled be waited for.
    let view = remote.queue(queue).await?;
    if view.options.order == Some(OrderWord::Position) && view.cursors > 0 {
        remark(format!(
            "where {} stand that have long been idle is not exported: what is sent to them where this is imported waits for all they have settled",
            counted(view.cursors, "workflow")
        ));
    }
    let (mut cursors, mut unsaid, mut after) = (ExportCursors::default(), UnsaidCount::default(), None);
    loop {
        let page = remote.workflows(queue, &[], after.as_deref(), limits::PAGE).await?;
        for view in page.workflows {
            unsaid.count(&view);
            match (WorkflowCursor::of(&view), view.set_aside) {
                (None, _) => {}
                (Some(cursor), 0) => cursors.plain.push(cursor),
                (Some(cursor), _) => cursors.around.push(cursor),
            }
        }
        after = page.after;
        if after.is_none() {
            break;
        }
    }
    unsaid.remark();
    Ok(cursors)
}

impl UnsaidCount {
    fn count(&mut self, workflow: &WorkflowEnvelope) {
        let is_held = workflow.holds.iter().any(|hold| hold.cause == HoldKind::Operator);
        let is_cut = workflow.settled_ahead.len() >= seriatim::limits::SETTLED_AHEAD_MAX;
        self.states += u64::from(workflow.has_state);
        self.operator_holds += u64::from(is_held);
        self.cut += u64::from(is_cut);
    }

    fn remark(&self) {
        let remarks = [
            (self.states, "keeps a state", "keep a state", "it is not exported"),
            (
                self.operator_holds,
                "is held by an operator",
                "are held by an operator",
                "the hold is not exported",
            ),
            (
                self.cut,
                "has settled much ahead of missing positions",
                "have settled much ahead of missing positions",
                "what is more than is shown of it is not exported, and waited for where this is imported",
            ),
        ];
        for (count, one, many, so) in remarks.into_iter().filter(|(count, ..)| *count > 0) {
            let what = if count == 1 { one } else { many };
            remark(format!("{} {what}: {so}", counted(count, "workflow")));
        }
    }
}

/// Has a workflow wait for nothing that was settled where it was exported. One of which nothing is known is held meanwhile, which makes it known; a hold
/// that an import has left which was broken off ends, too.
///
/// # Errors
/// [`RemoteError`].
pub(crate) async fn set_cursor(
    remote: &Remote,
    queue: &str,
    cursor: &WorkflowCursor,
) -> Result<(), RemoteError> {
    let id = &cursor.workflow_id;
    let known = known_workflow(remote, queue, id).await?;
    let is_held = known.as_ref().is_none_or(is_held_by_import);
    let request = OperateRequest { reason: Some(REASON.to_owned()), ..OperateRequest::default() };
    let workflow = match known {
        Some(known) => known,
        // Only now it is known where it begins: at the first position of the queue, or where it stood when it was forgotten.
        None => remote.operate(queue, id, Verb::Hold, &request).await?.workflow.unwrap_or_default(),
    };
    let voided = void_missing(remote, queue, cursor, workflow, &request).await;
    if is_held {
        let resume = OperateRequest { cause: Some(HoldKind::Operator), ..OperateRequest::default() };
        remote.operate(queue, id, Verb::Resume, &resume).await?;
    }
    voided
}

/// A workflow, if anything is stored of it.
async fn known_workflow(
    remote: &Remote,
    queue: &str,
    id: &str,
) -> Result<Option<WorkflowEnvelope>, RemoteError> {
    Ok(remote.workflow(queue, id).await?.filter(|known| known.status != WorkflowWord::Ended))
}

/// Whether a workflow is held because an import was broken off.
fn is_held_by_import(workflow: &WorkflowEnvelope) -> bool {
    workflow.holds.iter().any(|hold| hold.cause == HoldKind::Operator && hold.reason == REASON)
}

/// Declares void what is missing of what was settled. What is refused because something of it has come, or was settled, meanwhile is looked
/// at anew, as long as that finds something else.
async fn void_missing(
    remote: &Remote,
    queue: &str,
    cursor: &WorkflowCursor,
    mut workflow: WorkflowEnvelope,
    request: &OperateRequest,
) -> Result<(), RemoteError> {
    let mut refused_before = None;
    loop {
        let missing = missing_of(remote, queue, cursor, &workflow).await?;
        let mut refusal = None;
        for (from, to) in &missing {
            let range = OperateRequest { from: Some(*from), to: Some(*to), ..request.clone() };
            match remote.operate(queue, &cursor.workflow_id, Verb::Void, &range).await {
                Err(RemoteError::Problem(problem)) if problem.code == NOT_MISSING => refusal = Some(problem),
                voided => drop(voided?),
            }
        }
        let Some(problem) = refusal else { return Ok(()) };
        if refused_before.as_ref() == Some(&missing) {
            return Err(RemoteError::Problem(problem));
        }
        refused_before = Some(missing);
        workflow = known_workflow(remote, queue, &cursor.workflow_id).await?.unwrap_or_default();
    }
}

/// The ranges of what was settled that a workflow would wait for: neither stored nor settled there.
async fn missing_of(
    remote: &Remote,
    queue: &str,
    cursor: &WorkflowCursor,
    workflow: &WorkflowEnvelope,
) -> Result<Vec<(u64, u64)>, RemoteError> {
    let begin = workflow.next_position.unwrap_or(1);
    let settled = cursor.settled().map(|(from, to)| (from.max(begin), to));
    let settled: Vec<(u64, u64)> = settled.filter(|(from, to)| from <= to).collect();
    let Some(end) = settled.iter().map(|(_, to)| *to).max() else { return Ok(settled) };
    let mut there = stored_between(remote, queue, &cursor.workflow_id, (begin, end)).await?;
    there.extend(&workflow.settled_ahead);
    there.sort_unstable();
    Ok(settled.into_iter().flat_map(|range| missing(range, &there)).collect())
}

/// The positions of a range that are stored, each as a range.
async fn stored_between(
    remote: &Remote,
    queue: &str,
    workflow_id: &str,
    (mut from, to): (u64, u64),
) -> Result<Vec<(u64, u64)>, RemoteError> {
    let mut stored = Vec::new();
    loop {
        let page = remote.workflow_messages(queue, workflow_id, from, limits::EXPORT_PAGE).await?;
        let positions = page.messages.iter().filter_map(|message| message.position);
        stored.extend(positions.filter(|position| *position <= to).map(|position| (position, position)));
        match page.from.filter(|next| *next > from && *next <= to) {
            Some(next) => from = next,
            None => return Ok(stored),
        }
    }
}

/// What is left of a range without others, which are in order.
fn missing((mut from, to): (u64, u64), without: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut ranges = Vec::new();
    for (first, last) in without {
        if *first > from {
            ranges.push((from, to.min(first - 1)));
        }
        from = from.max(last + 1);
        if from > to {
            break;
        }
    }
    if from <= to {
        ranges.push((from, to));
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_stands_around_what_is_there() {
        assert_eq!(missing((1, 4), &[]), [(1, 4)]);
        assert_eq!(missing((3, 8), &[(4, 4), (5, 5), (8, 8)]), [(3, 3), (6, 7)]);
        assert_eq!(missing((3, 4), &[(3, 3), (4, 4)]), []);
        assert_eq!(missing((3, 8), &[(1, 3), (5, 6), (6, 6), (8, 20)]), [(4, 4), (7, 7)]);
        assert_eq!(missing((3, 5), &[(9, 9)]), [(3, 5)]);
    }
}
