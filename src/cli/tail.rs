//! `seriatim tail`: what happens, as it happens.

use serde_json::json;
use seriatim::api::views::EventView;
use seriatim::remote::Happening;

use crate::cli::arguments::look::TailArguments;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::moment::LocalTime;
use crate::cli::out::Stdout;
use crate::cli::out::printable;
use crate::cli::out::remark;
use crate::cli::word::counted;
use crate::cli::word::word;

/// Prints events until the daemon ends the stream.
pub(crate) async fn run(arguments: TailArguments) -> Result<bool, CliFailure> {
    let remote = connect(&arguments.daemon)?;
    let out = Stdout::new(arguments.daemon.json);
    let queue = arguments.queue.as_deref();
    let mut events = remote.events(queue).await.map_err(CliFailure::to("listen to events"))?;
    while let Some(happening) = events.next().await.map_err(CliFailure::to("listen to events"))? {
        match happening {
            Happening::Event(event) => {
                out.json(&event)?;
                out.say(describe(&event, &LocalTime::here()))?;
            }
            Happening::Missed(missed) => {
                remark(format!("this reader was too slow, and missed {}", counted(missed, "event")));
                out.json(&json!({ "missed": missed }))?;
            }
            _ => {}
        }
    }
    remark("the daemon has ended the stream");
    Ok(true)
}

fn describe(event: &EventView, present: &LocalTime) -> String {
    let name = match (&event.workflow_id, event.sequence_number) {
        (Some(id), Some(number)) => format!("{}/{id} #{number}", event.queue),
        (Some(id), None) => format!("{}/{id}", event.queue),
        (None, Some(number)) => format!("{}#{number}", event.queue),
        (None, None) => event.queue.clone(),
    };
    printable(&format!(
        "{} {} {name}{}",
        present.local(event.at),
        event.event.to_uppercase(),
        particulars(event, present)
    ))
}

/// What belongs to this kind of event, as ` name=value`.
fn particulars(event: &EventView, present: &LocalTime) -> String {
    let places = event.from.zip(event.to).map(|(from, to)| format!("{from}..{to}"));
    let named = [
        ("cause", event.hold_cause.map(|cause| word(&cause))),
        ("until", event.until.map(|until| present.local(until))),
        ("since", event.since.map(|since| present.local(since))),
        ("places", places),
        ("in_place", event.in_place.map(|in_place| in_place.to_string())),
        ("reason", event.reason.clone()),
    ];
    named.into_iter().filter_map(|(name, value)| Some(format!(" {name}={}", value?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_its_texts_hold() {
        let json = r#"{"at":"2027-01-31T12:00:00Z","queue":"orders","workflow_id":"a\nb","sequence_number":7,
                       "event":"blocked","reason":"no\nroute"}"#;
        let event = serde_json::from_str(json).unwrap();
        let line = describe(&event, &LocalTime::here());
        assert!(line.ends_with(" BLOCKED orders/a b #7 reason=no route"), "{line}");
    }
}
