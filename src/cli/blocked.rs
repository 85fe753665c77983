//! `seriatim blocked`: what does not go on, why, and what happens next.

use seriatim::wire::views::BlockedCause;
use seriatim::wire::views::BlockedView;
use seriatim::wire::views::HoldWord;
use seriatim::wire::views::NextAction;

use crate::cli::arguments::look::BlockedArguments;
use crate::cli::connect::connect;
use crate::cli::failure::Failure;
use crate::cli::limits;
use crate::cli::moment::Present;
use crate::cli::out::Out;
use crate::cli::out::shortened;
use crate::cli::table::Table;
use crate::cli::word::word;

/// Prints every workflow that is blocked, held or has a gap.
pub(crate) async fn run(arguments: BlockedArguments) -> Result<bool, Failure> {
    let remote = connect(&arguments.daemon)?;
    let out = Out::new(arguments.daemon.json);
    let (mut rows, mut after): (Vec<BlockedView>, Option<String>) = (Vec::new(), None);
    loop {
        let limit = limits::PAGE.min(arguments.limit - rows.len());
        let page = remote.blocked(arguments.queue.as_deref(), after.as_deref(), limit).await;
        let page = page.map_err(Failure::to("list what is blocked"))?;
        rows.extend(page.blocked);
        // A page that ends where it began would never end.
        after = page.after.filter(|next| after.as_ref() != Some(next));
        if after.is_none() || rows.len() >= arguments.limit {
            break;
        }
    }
    for row in &rows {
        out.json(row)?;
    }
    if rows.is_empty() {
        out.say("nothing is blocked")?;
        return Ok(true);
    }
    out.say(table(&rows, &Present::here()).to_string())?;
    if after.is_some() {
        out.say(format!("... and more: --limit {} prints more", arguments.limit * 10))?;
    }
    Ok(true)
}

/// One row for each workflow.
pub(crate) fn table(rows: &[BlockedView], present: &Present) -> Table {
    let mut table = Table::new(&["workflow", "cause", "since", ">waiting", "last error", "next"]);
    for row in rows {
        table.row([
            format!("{}/{}", row.queue, row.workflow_id),
            cause(row),
            row.since.map(|since| present.age(since)).unwrap_or_default(),
            row.waiting.to_string(),
            shortened(row.last_error.as_deref().unwrap_or_default(), limits::ERROR_LETTERS),
            next(row, present),
        ]);
    }
    table
}

/// Why a workflow does not get on, with what is missing or how often it was tried.
fn cause(row: &BlockedView) -> String {
    let attempts = row.delivery_count.map(|count| format!(" ({count}x)")).unwrap_or_default();
    let missing = row.first_missing.map(|first| match row.first_waiting {
        Some(waiting) if waiting > first + 1 => format!("{first}-{} are missing", waiting - 1),
        _ => format!("{first} is missing"),
    });
    match (row.cause, row.hold_cause, missing) {
        (BlockedCause::Held, Some(HoldWord::Spent), _) => format!("held: spent{attempts}"),
        (BlockedCause::Held, Some(HoldWord::Gap), Some(missing)) => format!("held: {missing}"),
        (BlockedCause::Held, Some(cause), _) => format!("held: {}", word(&cause)),
        (BlockedCause::Gap, _, Some(missing)) => format!("gap: {missing}"),
        (BlockedCause::Retry, ..) => format!("retry{attempts}"),
        (cause, ..) => word(&cause),
    }
}

/// What happens by itself, and when.
fn next(row: &BlockedView, present: &Present) -> String {
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
            json!({ "queue": "mail", "workflow_id": "a", "cause": "held", "hold_cause": "spent", "waiting": 1,
                "delivery_count": 10, "next": "..", "next_action": "nothing" }),
        ];
        let rows = rows.map(|row| serde_json::from_value::<BlockedView>(row).unwrap());
        let expected = "\
workflow     cause                   since       waiting  last error        next
orders/4711  retry (3x)              3m 12s ago        7  no route to host  retry in 4m
orders/4712  gap: 19-22 are missing  10s ago           2                    hold in 1m 30s
mail/a       held: spent (10x)                         1                    nothing: somebody has to act";
        assert_eq!(table(&rows, &Present::at(1_000_000)).to_string(), expected);
    }
}
