//! `seriatim check`: every mistake of a folder of definitions, or what they say.

use std::io::IsTerminal;

use serde_json::json;
use seriatim::Clock;
use seriatim::Order;
use seriatim::SystemClock;
use seriatim::Timestamp;
use seriatim::api::WireTime;
use seriatim::definition::Definition;
use seriatim::definition::Definitions;
use seriatim::definition::Diagnostic;
use seriatim::definition::HandlerDefinition;
use seriatim::definition::LoadError;
use seriatim::definition::ScheduleDefinition;
use seriatim::limits;

use crate::cli::arguments::define::CheckArguments;
use crate::cli::failure::CliFailure;
use crate::cli::failure::unless_cut_off;
use crate::cli::out::Stdout;
use crate::cli::out::printable;
use crate::cli::out::write_line;

/// Checks a folder; true when there is no mistake.
pub(crate) fn run(arguments: &CheckArguments) -> Result<bool, CliFailure> {
    let out = Stdout::new(arguments.json);
    match Definitions::load(&arguments.folder) {
        Ok(definitions) => {
            unless_cut_off(show(&out, &definitions))?;
            Ok(true)
        }
        Err(LoadError::Mistakes(mistakes)) => {
            unless_cut_off(report(&out, &mistakes))?;
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// Prints the JSON schema of a definition.
pub(crate) fn schema() -> Result<bool, CliFailure> {
    write_line(Definition::schema().trim_ascii_end().as_bytes())?;
    Ok(true)
}

fn report(out: &Stdout, mistakes: &[Diagnostic]) -> Result<(), CliFailure> {
    let colours = std::io::stdout().is_terminal();
    for mistake in mistakes {
        out.json(mistake)?;
        out.say(format!("{}\n", mistake.render(colours)))?;
    }
    let count =
        if mistakes.len() == 1 { "1 mistake".to_owned() } else { format!("{} mistakes", mistakes.len()) };
    out.say(count)?;
    Ok(())
}

fn show(out: &Stdout, definitions: &Definitions) -> Result<(), CliFailure> {
    let now = SystemClock::default().now();
    for definition in definitions.iter() {
        out.json(&as_json(definition, now))?;
        for line in lines(definition, now) {
            out.say(printable(&line))?;
        }
    }
    let count = match definitions.len() {
        0 => "no definitions".to_owned(),
        1 => "1 definition".to_owned(),
        count => format!("{count} definitions"),
    };
    out.say(format!("{count}, no mistakes"))?;
    Ok(())
}

fn lines(definition: &Definition, now: Timestamp) -> Vec<String> {
    let mut lines = vec![
        format!("{} ({})", definition.name, definition.file.display()),
        format!("  order     {}", order(definition)),
    ];
    let is_only = definition.handlers.len() == 1;
    let handlers = definition.handlers.iter();
    lines.extend(
        handlers.map(|handler| format!("  handler   {}: {}", subject(handler, is_only), handler.spec)),
    );
    if definition.handlers.is_empty() {
        lines.push("  handler   none: clients receive the messages".to_owned());
    }
    for schedule in &definition.schedules {
        lines.push(format!("  schedule  {}: {}", schedule.name, schedule.cron));
        lines.extend(ticks(schedule, now).map(|tick| format!("            {}", schedule.cron.local(tick))));
    }
    lines
}

/// In which order the messages of a workflow are handled, and where that is read.
fn order(definition: &Definition) -> String {
    let sources = definition.rule.sources();
    let (order, place) = match definition.options.order {
        Order::None => ("none", None),
        Order::Position { .. } => ("position", Some(&sources.position)),
        Order::After => ("after", Some(&sources.predecessor)),
        _ => ("arrival", None),
    };
    let says = |source: &Option<_>| match source {
        Some(source) => format!("{source}"),
        None => "the sender".to_owned(),
    };
    let place = place.map(|source| format!(" from {}", says(source))).unwrap_or_default();
    match definition.options.order {
        Order::None => order.to_owned(),
        _ => format!("{order}{place}, workflow from {}", says(&sources.key)),
    }
}

fn subject(handler: &HandlerDefinition, is_only: bool) -> String {
    match &handler.subject {
        Some(subject) => format!("subject {subject}"),
        None if is_only => "every subject".to_owned(),
        None => "every other subject".to_owned(),
    }
}

fn ticks(schedule: &ScheduleDefinition, now: Timestamp) -> impl Iterator<Item = Timestamp> {
    schedule.cron.ticks_between(now, Timestamp::MAX, limits::TICKS_SHOWN).into_iter()
}

fn as_json(definition: &Definition, now: Timestamp) -> serde_json::Value {
    let handlers = definition.handlers.iter();
    let handlers = handlers.map(|handler| {
        json!({ "subject": handler.subject, "kind": handler.spec.kind(), "does": handler.spec.to_string() })
    });
    let schedules = definition.schedules.iter().map(|schedule| {
        let next: Vec<WireTime> = ticks(schedule, now).map(WireTime).collect();
        let (cron, time_zone) = (schedule.cron.line(), schedule.cron.time_zone());
        json!({ "name": schedule.name, "cron": cron, "time_zone": time_zone, "next": next })
    });
    json!({
        "queue": definition.name.as_str(),
        "file": definition.file,
        "order": order(definition),
        "handlers": handlers.collect::<Vec<_>>(),
        "schedules": schedules.collect::<Vec<_>>(),
    })
}
