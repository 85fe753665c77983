//! `seriatim blocked`: what does not go on, why, and what happens next.

use seriatim::api::views::BlockedCause;
use seriatim::api::views::BlockedView;
use seriatim::api::views::NextAction;
use seriatim::queue::HoldKind;
use seriatim::remote::Remote;
use seriatim::remote::RemoteError;

use crate::cli::arguments::look::BlockedArguments;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::limits;
use crate::cli::listing::ListPart;
use crate::cli::listing::listed;
use crate::cli::moment::LocalTime;
use crate::cli::out::Stdout;
use crate::cli::out::shortened;
use crate::cli::table::TextTable;
use crate::cli::word::word;

/// Prints every workflow that is blocked, held or has a gap.
pub(crate) async fn run(arguments: BlockedArguments) -> Result<bool, CliFailure> {
    let remote = connect(&arguments.daemon)?;
    let out = Stdout::new(arguments.daemon.json);
    let listing = first(&remote, arguments.queue.as_deref(), arguments.cause, arguments.limit);
    let (rows, after) = listing.await.map_err(CliFailure::to("list what is blocked"))?;
    for row in &rows {
        out.json(row)?;
    }
    if rows.is_empty() {
        out.say("nothing is blocked")?;
        return Ok(true);
    }
    out.say(table(&rows, &LocalTime::here()).to_string())?;
    if after.is_some() {
        out.say(format!("... and more: --limit {} prints more", arguments.limit * 10))?;
    }
    Ok(true)
}

/// The first that do not go on, at most so many, whatever pages they stand on; and where it goes on if there are more.
///
/// # Errors
/// [`RemoteError`].
pub(crate) async fn first(
    remote: &Remote,
    queue: Option<&str>,
    cause: Option<BlockedCause>,
    most: usize,
) -> Result<ListPart<BlockedView>, RemoteError> {
    listed(most, None, async |after, limit| {
        let page = remote.blocked(queue, cause, after, limit).await?;
        Ok((page.blocked, page.after))
    })
    .await
}

/// One row for each workflow.
pub(crate) fn table(rows: &[BlockedView], present: &LocalTime) -> TextTable {
    let mut table = TextTable::new(&["workflow", "cause", "since", ">waiting", "last error", "next"]);
    for row in rows {
        table.row([
            place(row),
            cause(row),
            row.since.map(|since| present.age(since)).unwrap_or_default(),
            row.waiting.to_string(),
            shortened(row.last_error.as_deref().unwrap_or_default(), limits::ERROR_LETTERS),
            next(row, present),
        ]);
    }
    table
}

/// What does not go on: a workflow, or a message without one.
pub(crate) fn place(row: &BlockedView) -> String {
    match (&row.workflow_id, row.sequence_number) {
        (Some(id), _) => format!("{}/{id}", row.queue),
        (None, Some(number)) => format!("{}#{number}", row.queue),
        (None, None) => row.queue.clone(),
    }
}

/// Why a workflow does not go on, with what is missing, how often it was tried, or how large it is.
pub(crate) fn cause(row: &BlockedView) -> String {
    let attempts = row.delivery_count.map(|count| format!(" ({count}x)")).unwrap_or_default();
    let missing = row.first_missing.map(|first| match row.first_waiting {
        Some(waiting) if waiting > first + 1 => format!("{first}-{} are missing", waiting - 1),
        _ => format!("{first} is missing"),
    });
    let predecessor = || row.missing_predecessor.as_ref().map(|id| format!("{id} is missing"));
    let missing = missing.or_else(predecessor);
    let held = |cause: HoldKind| match (cause, &missing) {
        (HoldKind::Exhausted, _) => format!("exhausted{attempts}"),
        (HoldKind::Gap, Some(missing)) => missing.clone(),
        (cause, _) => word(&cause),
    };
    match (row.cause, row.hold_cause, &missing) {
        (BlockedCause::Held, Some(cause), _) => {
            // Each cause has to be lifted; a daemon of before says only one.
            let all = row.holds.iter().map(|hold| hold.cause).chain(row.holds.is_empty().then_some(cause));
            format!("held: {}", all.map(held).collect::<Vec<_>>().join(", "))
        }
        (BlockedCause::Gap, _, Some(missing)) => format!("gap: {missing}"),
        (BlockedCause::TooLarge, ..) => match (row.message_bytes, row.receiver_bytes_max) {
            (Some(bytes), Some(max)) => format!("too large: {bytes} bytes, its receiver takes {max}"),
            _ => word(&row.cause),
        },
        (BlockedCause::Retry, ..) => format!("retry{attempts}"),
        (cause, ..) => word(&cause),
    }
}

/// What happens by itself, and when.
pub(crate) fn next(row: &BlockedView, present: &LocalTime) -> String {
    match (row.next_action, row.next_at) {
        (NextAction::Nothing, _) => "nothing: somebody has to act".to_owned(),
        (action, Some(at)) => format!("{} {}", word(&action), present.age(at)),
        (action, None) => word(&action),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_says_why_since_when_and_what_happens_next() {
        let rows = [
            json!({ "queue": "orders", "workflow_id": "4711", "cause": "retry", "since": 808_000, "waiting": 7,
                "delivery_count": 3, "last_error": "no route\nto host", "next": "..", "next_action": "retry",
                "next_at": 1_240_000 }),
            json!({ "queue": "orders", "workflow_id": "4712", "cause": "gap", "since": 990_000, "waiting": 2,
                "first_missing": 19, "first_waiting": 23, "next": "..", "next_action": "hold", "next_at": 1_090_000 }),
            json!({ "queue": "mail", "workflow_id": "a", "cause": "held", "hold_cause": "exhausted", "waiting": 1,
                "delivery_count": 10, "next": "..", "next_action": "nothing" }),
            json!({ "queue": "mail", "workflow_id": "b", "cause": "held", "hold_cause": "operator", "waiting": 1,
                "holds": [{ "cause": "operator", "since": 0, "reason": "" }, { "cause": "gap", "since": 0, "reason": "" }],
                "next": "..", "next_action": "nothing" }),
            json!({ "queue": "mail", "cause": "too_large", "since": 990_000, "waiting": 3, "sequence_number": 17,
                "delivery_count": 0, "message_bytes": 2_000, "receiver_bytes_max": 1_000,
                "next": "..", "next_action": "nothing" }),
        ];
        let rows = rows.map(|row| serde_json::from_value::<BlockedView>(row).unwrap());
        let expected = "\
workflow     cause                                           since       waiting  last error        next
orders/4711  retry (3x)                                      3m 12s ago        7  no route to host  retry in 4m
orders/4712  gap: 19-22 are missing                          10s ago           2                    hold in 1m 30s
mail/a       held: exhausted (10x)                                             1                    nothing: somebody has to act
mail/b       held: operator, gap                                               1                    nothing: somebody has to act
mail#17      too large: 2000 bytes, its receiver takes 1000  10s ago           3                    nothing: somebody has to act";
        assert_eq!(table(&rows, &LocalTime::at(1_000_000)).to_string(), expected);
    }
}
