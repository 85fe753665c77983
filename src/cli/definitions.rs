//! `seriatim definitions`: what is loaded, loading again, pausing handlers.

use serde_json::json;
use seriatim::api::DefinitionPage;
use seriatim::api::views::DefinitionView;
use seriatim::api::views::SourceView;

use crate::cli::arguments::look::DefinitionsArguments;
use crate::cli::arguments::look::DefinitionsVerb;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::failure::unless_cut_off;
use crate::cli::moment::LocalTime;
use crate::cli::out::Stdout;
use crate::cli::table::TextTable;
use crate::cli::word::word;

/// Lists definitions, loads them again, pauses or resumes the handlers of a queue; false when a file is wrong.
pub(crate) async fn run(arguments: DefinitionsArguments) -> Result<bool, CliFailure> {
    let remote = connect(&arguments.daemon)?;
    let out = Stdout::new(arguments.daemon.json);
    match arguments.what.unwrap_or(DefinitionsVerb::List) {
        DefinitionsVerb::List => {
            let page = remote.definitions().await.map_err(CliFailure::to("list the definitions"))?;
            unless_cut_off(print_page(&page, &out))?;
            Ok(are_good(&page.definitions) && page.problem.is_none())
        }
        DefinitionsVerb::Reload => {
            let definitions = remote.reload().await.map_err(CliFailure::to("load the definitions again"))?;
            unless_cut_off(print_loaded(&definitions, &out))?;
            Ok(are_good(&definitions))
        }
        DefinitionsVerb::Pause { queue } => {
            remote.pause(&queue).await.map_err(CliFailure::to(format!("pause {queue}")))?;
            out.json(&json!({ "queue": queue, "paused": true }))?;
            out.say(format!("{queue}: its handlers take no further messages"))?;
            Ok(true)
        }
        DefinitionsVerb::Resume { queue } => {
            remote.unpause(&queue).await.map_err(CliFailure::to(format!("resume {queue}")))?;
            out.json(&json!({ "queue": queue, "paused": false }))?;
            out.say(format!("{queue}: its handlers go on"))?;
            Ok(true)
        }
    }
}

fn print_page(page: &DefinitionPage, out: &Stdout) -> Result<(), CliFailure> {
    print(&page.definitions, out)?;
    if let Some(problem) = &page.problem {
        out.json(&json!({ "problem": problem }))?;
        out.say(format!("the files as they are now are not in use:\n{problem}"))?;
    }
    Ok(())
}

fn print_loaded(definitions: &[DefinitionView], out: &Stdout) -> Result<(), CliFailure> {
    out.say("the definitions are loaded again")?;
    print(definitions, out)
}

fn print(definitions: &[DefinitionView], out: &Stdout) -> Result<(), CliFailure> {
    let present = LocalTime::here();
    let mut table = TextTable::new(&["queue", "file", "handlers", ">schedules", "loaded", "", "problem"]);
    for definition in definitions {
        out.json(definition)?;
        table.row([
            definition.queue.clone(),
            definition.file.clone(),
            handlers(definition),
            definition.schedules.to_string(),
            present.age(definition.loaded_at),
            match &definition.held_back {
                _ if definition.paused => "paused".to_owned(),
                Some(held_back) => {
                    format!("{} until {}", word(&held_back.cause), present.age(held_back.until))
                }
                None => String::new(),
            },
            problem(definition).unwrap_or_default().to_owned(),
        ]);
    }
    match table.is_empty() {
        true => out.say("there are no definitions")?,
        false => out.say(table.to_string())?,
    }
    Ok(())
}

/// Whether none has a problem.
fn are_good(definitions: &[DefinitionView]) -> bool {
    definitions.iter().all(|definition| problem(definition).is_none())
}

/// What is wrong with a file, or with the source it names.
fn problem(definition: &DefinitionView) -> Option<&str> {
    let of_source = definition.source.as_ref().and_then(|source| source.problem.as_deref());
    definition.problem.as_deref().or(of_source)
}

fn handlers(definition: &DefinitionView) -> String {
    let handlers = match definition.handlers.is_empty() {
        true => "none: clients receive".to_owned(),
        false => definition.handlers.join(", "),
    };
    match &definition.source {
        Some(source) => format!("{handlers}; copies {}", describe(source)),
        None => handlers,
    }
}

/// A source in a few words: which table, how far, how much waits.
fn describe(source: &SourceView) -> String {
    let through = source.copied_through.map(|row| format!(" through row {row}")).unwrap_or_default();
    let more = if source.more_behind { " or more" } else { "" };
    let held = match source.waits_for_transactions {
        0 => String::new(),
        1 => ", held back by an open transaction".to_owned(),
        count => format!(", held back by {count} open transactions"),
    };
    format!("{}{through}, {}{more} behind{held}", source.table, source.rows_behind)
}
