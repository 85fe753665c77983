//! Mistakes that only all definitions together show: names that are taken, of queues and topics, and forwards that lead nowhere or in a circle.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;

use crate::definition::definition::Definition;
use crate::definition::diagnostic::Diagnostic;
use crate::definition::diagnostic::line_and_column;
use crate::definition::handler::ForwardTarget;
use crate::definition::handler::HandlerSpec;
use crate::definition::read::FileReading;
use crate::definition::suggest::nearest;
use crate::id::QueueName;
use crate::intake::Sources;
use crate::queue::Order;

/// The mistakes of these files, taken together; with whether there are no others, which could not be read.
pub(crate) fn mistakes(readings: &[(PathBuf, FileReading)], are_all_read: bool) -> Vec<Diagnostic> {
    let mut found = duplicate_names(readings);
    found.extend(taken_topics(readings));
    // A queue that is missed may be that of a file whose name for it could not be read.
    if are_all_read && readings.iter().all(|(_, reading)| reading.name.is_some()) {
        found.extend(lost_forwards(readings));
    }
    found.extend(misplaced_forwards(readings));
    found.extend(circles(readings));
    found
}

fn duplicate_names(readings: &[(PathBuf, FileReading)]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut seen: BTreeMap<&QueueName, &(PathBuf, FileReading)> = BTreeMap::new();
    for reading in readings {
        let Some(name) = &reading.1.name else { continue };
        let Some((file, first)) = seen.get(name) else {
            seen.insert(name, reading);
            continue;
        };
        let line = first.name_span.as_ref().map_or(1, |span| line_and_column(&first.text, span.start).0);
        let message = format!("the queue `{name}` is defined already, in {}:{line}", file.display());
        found.push(at(reading, reading.1.name_span.clone(), message, None));
    }
    found
}

/// Topics that are called as a queue is.
fn taken_topics(readings: &[(PathBuf, FileReading)]) -> Vec<Diagnostic> {
    let named = readings.iter().filter_map(|(file, reading)| Some((reading.name.as_ref()?, file)));
    let queues: BTreeMap<&QueueName, &PathBuf> = named.collect();
    let mut found = Vec::new();
    for reading in readings {
        let Some((topic, span)) = &reading.1.topic else { continue };
        let Some(file) = queues.get(topic) else { continue };
        let message =
            format!("`{topic}` is a queue already, in {}, and cannot be a topic too", file.display());
        found.push(at(reading, Some(span.clone()), message, None));
    }
    found
}

fn lost_forwards(readings: &[(PathBuf, FileReading)]) -> Vec<Diagnostic> {
    let known: BTreeSet<&str> =
        readings.iter().filter_map(|(_, reading)| Some(reading.name.as_ref()?.as_str())).collect();
    let mut found = Vec::new();
    for reading in readings {
        for FolderForward { target, span, .. } in forwards(reading) {
            if known.contains(target.as_str()) {
                continue;
            }
            let help = match nearest(target.as_str(), known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("write {target}.toml, which may be empty"),
            };
            found.push(at(
                reading,
                span,
                format!("there is no definition of a queue `{target}`"),
                Some(help),
            ));
        }
    }
    found
}

/// Forwards whose messages the other queue would refuse, because they come with a position or without one.
fn misplaced_forwards(readings: &[(PathBuf, FileReading)]) -> Vec<Diagnostic> {
    let definitions: BTreeMap<&QueueName, &Definition> = readings
        .iter()
        .filter_map(|(_, reading)| reading.result.as_ref().ok())
        .map(|definition| (&definition.name, definition))
        .collect();
    let by_position = |definition: &Definition| matches!(definition.options.order, Order::Position { .. });
    let mut found = Vec::new();
    for reading in readings {
        for FolderForward { from, target, keep_position, span } in forwards(reading) {
            let Some(to) = definitions.get(target).filter(|to| to.name != from.name) else { continue };
            let Sources { key, position, predecessor, .. } = to.rule.sources();
            let reads_position = position.is_some();
            // A message without a workflow needs no predecessor.
            let has_workflow = from.options.order != Order::None || key.is_some();
            let (message, help) = match (keep_position, by_position(to)) {
                (true, false) => {
                    (format!("the queue `{target}` is not ordered by position"), "leave `keep_position` out")
                }
                (true, true) if !by_position(from) => (
                    "a message of this queue has no position to keep".to_owned(),
                    "leave `keep_position` out",
                ),
                (false, true) if !reads_position => {
                    let message = format!("the queue `{target}` takes only messages with a position");
                    (message, "write keep_position = true, or give that queue a `position` to read")
                }
                (false, false)
                    if to.options.order == Order::After && predecessor.is_none() && has_workflow =>
                {
                    let message =
                        format!("the queue `{target}` takes only messages that name their predecessor");
                    (message, "a forward names none: give that queue an `after` to read")
                }
                _ => continue,
            };
            found.push(at(reading, span, message, Some(help.to_owned())));
        }
    }
    found
}

/// Forwards that lead in a circle: a message would go round for ever.
///
/// A forward keeps the subject, so for each subject that is named anywhere, and for all others, the forwards are arrows
/// from queue to queue; each queue has at most one.
fn circles(readings: &[(PathBuf, FileReading)]) -> Vec<Diagnostic> {
    let definitions: BTreeMap<&QueueName, (&(PathBuf, FileReading), &Definition)> = readings
        .iter()
        .filter_map(|reading| {
            let definition = reading.1.result.as_ref().ok()?;
            Some((&definition.name, (reading, definition)))
        })
        .collect();
    let subjects = definitions.values().flat_map(|(_, definition)| &definition.handlers);
    let subjects: BTreeSet<Option<&str>> =
        subjects.map(|handler| handler.subject.as_deref()).chain([None]).collect();
    let mut found = BTreeMap::new();
    for subject in subjects {
        for start in definitions.keys() {
            let Some(path) = circle(start, |queue| {
                let handler = definitions.get(queue)?.1.handler(subject)?;
                match &handler.spec {
                    HandlerSpec::Forward { target: ForwardTarget::Queue(target), .. } => Some(target),
                    _ => None,
                }
            }) else {
                continue;
            };
            // Each circle once, at its first queue by name.
            if path.iter().min() == Some(start) {
                let names: Vec<&str> = path.iter().map(|queue| queue.as_str()).collect();
                found.entry(names.join(" to ")).or_insert((*start, subject));
            }
        }
    }
    let mistake = |(path, (start, subject)): (String, (&QueueName, Option<&str>))| {
        let (reading, definition) = definitions[start];
        let handler = definition.handler(subject);
        let number = definition.handlers.iter().position(|other| Some(other) == handler);
        let span = number.and_then(|number| reading.1.forward_spans.get(number).cloned().flatten());
        let message = format!("a message would be forwarded in a circle: from {path} to {start}");
        at(reading, span, message, None)
    };
    found.into_iter().map(mistake).collect()
}

/// The queues on the way from a queue back to itself, if the arrows lead back.
fn circle<'q>(
    start: &'q QueueName,
    arrow: impl Fn(&QueueName) -> Option<&'q QueueName>,
) -> Option<Vec<&'q QueueName>> {
    let mut path = vec![start];
    let mut at = start;
    while let Some(next) = arrow(at) {
        if next == start {
            return Some(path);
        }
        // A circle that does not lead through the start is found from a queue that is in it.
        if path.contains(&next) {
            return None;
        }
        path.push(next);
        at = next;
    }
    None
}

/// A handler that forwards to a queue of the folder.
struct FolderForward<'r> {
    from: &'r Definition,
    target: &'r QueueName,
    keep_position: bool,
    span: Option<Range<usize>>,
}

fn forwards((_, reading): &(PathBuf, FileReading)) -> impl Iterator<Item = FolderForward<'_>> {
    let definition = reading.result.as_ref().ok();
    let handlers =
        definition.into_iter().flat_map(|from| from.handlers.iter().map(move |handler| (from, handler)));
    handlers.zip(&reading.forward_spans).filter_map(|((from, handler), span)| match &handler.spec {
        HandlerSpec::Forward { target: ForwardTarget::Queue(target), keep_position } => {
            Some(FolderForward { from, target, keep_position: *keep_position, span: span.clone() })
        }
        _ => None,
    })
}

fn at(
    (file, reading): &(PathBuf, FileReading),
    span: Option<Range<usize>>,
    message: String,
    help: Option<String>,
) -> Diagnostic {
    match span {
        Some(span) => Diagnostic::at(file, &reading.text, span, message, help),
        None => Diagnostic::of_file(file, message, help),
    }
}
