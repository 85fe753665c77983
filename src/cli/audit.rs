//! `seriatim audit`: what operators did.

use seriatim::remote::AuditView;

use crate::cli::arguments::look::AuditArguments;
use crate::cli::connect::connect;
use crate::cli::failure::Failure;
use crate::cli::limits;
use crate::cli::moment::Present;
use crate::cli::out::Out;
use crate::cli::table::Table;

/// Prints what operators did, oldest first.
pub(crate) async fn run(arguments: AuditArguments) -> Result<bool, Failure> {
    let remote = connect(&arguments.daemon)?;
    let out = Out::new(arguments.daemon.json);
    let (mut entries, mut after): (Vec<AuditView>, Option<u64>) = (Vec::new(), arguments.after);
    while entries.len() < arguments.limit {
        let limit = limits::PAGE.min(arguments.limit - entries.len());
        let page = remote.audit(after, limit).await.map_err(Failure::to("list what operators did"))?;
        entries.extend(page.audit);
        after = page.after;
        if after.is_none() {
            break;
        }
    }
    let present = Present::here();
    let mut table = Table::new(&[">entry", "when", "who", "what", "on", "reason"]);
    for entry in &entries {
        out.json(entry)?;
        table.row([
            entry.number.to_string(),
            entry.at.map(|at| present.full(at)).unwrap_or_default(),
            entry.actor.clone(),
            entry.verb.clone(),
            subject(entry),
            entry.reason.clone().unwrap_or_default(),
        ]);
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

/// What it was done to.
fn subject(entry: &AuditView) -> String {
    let queue = entry.queue.as_deref().unwrap_or_default();
    match (&entry.workflow_id, entry.sequence_number) {
        (Some(id), _) => format!("{queue}/{id}"),
        (None, Some(number)) => format!("{queue}#{number}"),
        (None, None) => queue.to_owned(),
    }
}
