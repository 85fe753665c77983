//! A line of a batch over HTTP, of any bytes: it is refused, or becomes a message that looks the same when it is shown.

use seriatim::api::OutcomeEnvelope;
use seriatim::api::SendEnvelope;

/// Reads a message to send, and an answer of a handler, which can carry some.
pub(crate) fn send(data: &[u8]) {
    if let Ok(outcome) = serde_json::from_slice::<OutcomeEnvelope>(data) {
        // Refused or not, it ends.
        let _ = outcome.read(|_, message| Ok(message));
    }
    let Ok(envelope) = serde_json::from_slice::<SendEnvelope>(data) else { return };
    let Ok(message) = envelope.into_message() else { return };
    let shown = serde_json::to_string(&SendEnvelope::show(&message)).expect("what was read can be written");
    assert!(!shown.contains('\n'), "a line stays a line");
    let again: SendEnvelope = serde_json::from_str(&shown).expect("what was written can be read");
    let again = again.into_message().expect("what was sent can be sent again");
    assert_eq!(again.body(), message.body(), "{shown}");
}
