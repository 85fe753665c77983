//! What a program or a receiver answered, as the processor takes it.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;

use crate::api::OutcomeEnvelope;
use crate::api::plain;
use crate::handlers::site::Site;
use crate::limits;
use crate::processor::Failure;
use crate::processor::Outcome;

/// Reads an answer; one that is wrong is a failure, never a completion.
pub(crate) fn read(site: &Site, text: &[u8]) -> Result<Outcome, Failure> {
    match serde_json::from_slice(text) {
        Ok(envelope) => result(site, envelope),
        Err(error) => Err(wrong(&plain(&error))),
    }
}

/// Whether a text is a JSON object that says nothing an answer could say: a program's own output, such as an echo.
pub(crate) fn is_something_else(text: &[u8]) -> bool {
    let object = serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(text);
    object.is_ok_and(|object| {
        !object.is_empty() && object.keys().all(|field| !OutcomeEnvelope::FIELDS.contains(&field.as_str()))
    })
}

/// Whether a text is a JSON object with an `outcome`, or was meant as one: of what is no JSON, its sender would lose what it says.
pub(crate) fn names_outcome(text: &[u8]) -> bool {
    match serde_json::from_slice::<BTreeMap<String, Option<IgnoredAny>>>(text) {
        Ok(object) => object.get("outcome").is_some_and(Option::is_some),
        Err(error) if error.is_data() => false,
        Err(_) => text.windows(9).any(|part| matches!(part, b"\"outcome\"" | b"'outcome'")),
    }
}

/// What an answer says.
pub(crate) fn result(site: &Site, envelope: OutcomeEnvelope) -> Result<Outcome, Failure> {
    let place = |queue: &str, message| (site.place)(queue, message);
    envelope.read(place).unwrap_or_else(|misuse| Err(wrong(&misuse)))
}

fn wrong(why: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("the handler's answer is wrong: {why}"))
}

/// A line of foreign output as part of a reason: valid, short, and without what would move a terminal's cursor.
pub(crate) fn legible(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let clean = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.take(limits::FOREIGN_LINE_CHARS_MAX).collect()
}
