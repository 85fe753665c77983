//! `seriatim blocked`: what does not go on, why, and what happens next.

use seriatim::wire::views::BlockedView;

use crate::cli::arguments::look::BlockedArguments;
use crate::cli::connect::connect;
use crate::cli::failure::Failure;
use crate::cli::limits;
use crate::cli::moment::Present;
use crate::cli::out::Out;
use crate::cli::out::shortened;
use crate::cli::table::Table;

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
        after = page.after;
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

pub(crate) fn table(rows: &[BlockedView], present: &Present) -> Table {
    let mut table = Table::new(&["workflow", "cause", "since", ">waiting", "next", "last error"]);
    for row in rows {
        table.row([
            name(row),
            row.cause.clone(),
            row.since.map(|since| present.age(since)).unwrap_or_default(),
            row.waiting.to_string(),
            next(row, present),
            shortened(row.last_error.as_deref().unwrap_or_default(), limits::ERROR_LETTERS),
        ]);
    }
    table
}

fn name(row: &BlockedView) -> String {
    match (&row.workflow_id, row.sequence_number) {
        (Some(id), _) => format!("{}/{id}", row.queue),
        (None, Some(number)) => format!("{}#{number}", row.queue),
        (None, None) => row.queue.clone(),
    }
}

/// What happens by itself, and when.
pub(crate) fn next(row: &BlockedView, present: &Present) -> String {
    match (&row.next, row.next_at) {
        (Some(next), Some(at)) => format!("{next} {}", present.age(at)),
        (Some(next), None) => next.clone(),
        (None, _) => "nothing: act".to_owned(),
    }
}
