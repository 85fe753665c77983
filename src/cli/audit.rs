//! `seriatim audit`: what operators did.

use seriatim::api::views::AuditView;

use crate::cli::arguments::look::AuditArguments;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::listing::listed;
use crate::cli::moment::LocalTime;
use crate::cli::out::Stdout;
use crate::cli::table::TextTable;
use crate::cli::word::word;

/// Prints what operators did, oldest first.
pub(crate) async fn run(arguments: AuditArguments) -> Result<bool, CliFailure> {
    let remote = connect(&arguments.daemon)?;
    let out = Stdout::new(arguments.daemon.json);
    let listing = listed(arguments.limit, arguments.after, async |after, limit| {
        let page = remote.audit(after, limit).await?;
        Ok((page.actions, page.after))
    });
    let (actions, after) = listing.await.map_err(CliFailure::to("list what operators did"))?;
    let present = LocalTime::here();
    let mut table = TextTable::new(&["when", "who", "what", "on", "reason", "outcome"]);
    for action in &actions {
        out.json(action)?;
        table.row(row(action, &present));
    }
    match table.is_empty() {
        true => out.say("no operator did anything")?,
        false => out.say(table.to_string())?,
    }
    if let Some(after) = after {
        out.say(format!("... and more: --after {after}"))?;
    }
    Ok(true)
}

/// When, who, what, on what and why; then what came of it.
fn row(action: &AuditView, present: &LocalTime) -> [String; 6] {
    let queue = &action.queue;
    let subject = match (&action.workflow_id, action.sequence_number) {
        (Some(id), Some(number)) => format!("{queue}/{id} #{number}"),
        (Some(id), None) => format!("{queue}/{id}"),
        (None, Some(number)) => format!("{queue}#{number}"),
        (None, None) => queue.clone(),
    };
    let positions = action.positions.map(|(from, to)| format!(" {from}..{to}")).unwrap_or_default();
    let outcome = match &action.refusal {
        Some(refusal) => format!("REFUSED: {refusal}"),
        None => format!("{} changed", action.count),
    };
    [
        present.full(action.at),
        action.actor.clone(),
        word(&action.verb),
        format!("{subject}{positions}"),
        action.reason.clone().unwrap_or_default(),
        outcome,
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_action_says_who_did_what_to_what_and_why() {
        let action = json!({
            "number": 1, "at": 0, "actor": "anna", "verb": "declare_void", "queue": "orders", "workflow_id": "4711",
            "positions": [3, 4], "reason": "lost", "count": 1,
        });
        let row = row(&serde_json::from_value(action).unwrap(), &LocalTime::at(5_000));
        let when = "1970-01-01T00:00:00+00:00 (5s ago)";
        assert_eq!(row, [when, "anna", "declare void", "orders/4711 3..4", "lost", "1 changed"]);
    }
}
