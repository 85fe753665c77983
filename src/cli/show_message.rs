//! One message: its headers, its attempts, its body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use seriatim::api::AttemptEnvelope;
use seriatim::api::DeliveryEnvelope;
use seriatim::api::pretty;
use seriatim::api::views::HistoryView;
use seriatim::api::views::MessageEnvelope;
use seriatim::remote::Remote;

use crate::cli::failure::CliFailure;
use crate::cli::moment::LocalTime;
use crate::cli::out::Stdout;
use crate::cli::out::printable;
use crate::cli::show_history::ended_text;
use crate::cli::strip::what;
use crate::cli::word::counted;

/// Bytes of a body that is no text which are printed.
const BYTES_SHOWN: usize = 256;

/// Shows a message.
pub(crate) async fn run(remote: &Remote, out: &Stdout, queue: &str, number: u64) -> Result<(), CliFailure> {
    let what = format!("show {queue}#{number}");
    let message = remote.message(queue, number).await.map_err(CliFailure::to(&what))?;
    let Some(message) = message else {
        return Err(CliFailure::Refused(format!(
            "{what}: it is not stored; it has ended and its queue does not remember it, or it never was"
        )));
    };
    out.json(&message)?;
    for line in describe(queue, &message, &LocalTime::here()) {
        out.say(line)?;
    }
    Ok(())
}

/// The lines of a message that is looked at.
pub(crate) fn describe(queue: &str, message: &MessageEnvelope, present: &LocalTime) -> Vec<String> {
    if let Some(ended) = &message.ended {
        return ended_lines(queue, ended, present);
    }
    let mut lines = vec![format!("{queue}#{}: {}", message.sequence_number, what(message, true, present))];
    let mut add = |name: &str, value: Option<String>| lines.extend(named(name, value));
    if let Some(dead_letter) = &message.dead_letter {
        add("reason", Some(dead_letter.reason.clone()));
        add("description", Some(dead_letter.description.clone()).filter(|text| !text.is_empty()));
        add("dead-lettered", Some(present.full(dead_letter.at)));
    }
    add("after", message.after.clone());
    // What both show is told in the same words.
    lines.extend(envelope_lines(&as_delivery(queue, message), present));
    lines
}

/// The lines of a message that has ended.
fn ended_lines(queue: &str, ended: &HistoryView, present: &LocalTime) -> Vec<String> {
    let number = ended.sequence_number.unwrap_or_default();
    let mut lines = vec![format!("{queue}#{number}: {}", ended_text(ended, present))];
    let mut add = |name: &str, value: Option<String>| lines.extend(named(name, value));
    add("workflow", ended.workflow_id.clone());
    add("position", ended.positions.map(|(position, _)| position.to_string()));
    add("accepted", ended.accepted_at.map(|at| present.full(at)));
    add("handed out", Some(counted(ended.delivery_count.into(), "time")));
    add("message ID", ended.message_id.clone());
    add("last error", ended.reason.clone());
    lines
}

fn as_delivery(queue: &str, message: &MessageEnvelope) -> DeliveryEnvelope {
    let message = message.clone();
    DeliveryEnvelope {
        queue: queue.to_owned(),
        sequence_number: message.sequence_number,
        workflow_id: message.workflow_id,
        position: message.position,
        message_id: message.message_id,
        delivery_count: message.delivery_count,
        attempts: message.attempts,
        accepted_at: Some(message.accepted_at),
        expires_at: message.expires_at,
        subject: message.subject,
        content_type: message.content_type,
        correlation_id: message.correlation_id,
        reply_to: message.reply_to,
        properties: message.properties,
        body: message.body,
        body_text: message.body_text,
        body_base64: message.body_base64,
        ..DeliveryEnvelope::default()
    }
}

/// The lines of a message that was taken.
pub(crate) fn delivery_lines(envelope: &DeliveryEnvelope, present: &LocalTime) -> Vec<String> {
    let mut lines = vec![format!("{}#{}: taken", envelope.queue, envelope.sequence_number)];
    lines.extend(named("delivery", envelope.delivery.clone()));
    lines.extend(named("locked until", envelope.locked_until.map(|until| present.full(until))));
    lines.extend(envelope_lines(envelope, present));
    lines
}

fn named(name: &str, value: Option<String>) -> Option<String> {
    value.map(|value| format!("  {name}: {}", printable(&value)))
}

fn envelope_lines(envelope: &DeliveryEnvelope, present: &LocalTime) -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |name: &str, value: Option<String>| lines.extend(named(name, value));
    add("workflow", envelope.workflow_id.clone());
    add("position", envelope.position.map(|position| position.to_string()));
    add("accepted", envelope.accepted_at.map(|at| present.full(at)));
    add("expires", envelope.expires_at.map(|at| present.full(at)));
    add("handed out", Some(counted(envelope.delivery_count.into(), "time")));
    if let Some(dead_letter) = &envelope.dead_letter {
        add("reason", Some(dead_letter.reason.clone()));
        add("description", Some(dead_letter.description.clone()).filter(|text| !text.is_empty()));
    }
    add("message ID", envelope.message_id.clone());
    add("subject", envelope.subject.clone());
    add("content type", envelope.content_type.clone());
    add("correlation ID", envelope.correlation_id.clone());
    add("reply to", envelope.reply_to.clone());
    for (name, value) in &envelope.properties {
        add(&format!("property {}", printable(name)), Some(value.to_string()));
    }
    for attempt in &envelope.attempts {
        let (count, at, lasted) = (attempt.delivery_count, present.full(attempt.at), attempt.lasted);
        lines.extend(named(
            &format!("attempt {count}"),
            Some(format!("{at}, took {lasted}: {}", attempt.reason)),
        ));
        lines.extend(output_lines(attempt));
    }
    lines.extend(body_lines(envelope));
    lines
}

/// What a handler wrote, line by line, behind how much of it is not kept.
pub(crate) fn output_lines(attempt: &AttemptEnvelope) -> Vec<String> {
    let cut = attempt.output_cut_bytes;
    let cut = (cut > 0).then(|| format!("    [{} of output not kept]", counted(cut, "byte")));
    let lines = attempt.output.lines().map(|line| format!("    {}", printable(line)));
    cut.into_iter().chain(lines).collect()
}

/// The body: JSON set out over lines, text as it is but without what commands a terminal, bytes in hexadecimal.
fn body_lines(envelope: &DeliveryEnvelope) -> Vec<String> {
    let DeliveryEnvelope { body, body_text, body_base64, .. } = envelope;
    let text = match (body, body_text, body_base64) {
        (Some(json), ..) => pretty(json.get()),
        (_, Some(text), _) => text.clone(),
        (_, _, Some(base64)) => return vec![format!("  body: {}", bytes_text(base64))],
        _ => return vec!["  body: empty".to_owned()],
    };
    let lines = text.lines().map(|line| format!("    {}", printable(line)));
    std::iter::once("  body:".to_owned()).chain(lines).collect()
}

fn bytes_text(base64: &str) -> String {
    let Ok(bytes) = BASE64.decode(base64) else { return "not readable".to_owned() };
    let shown = &bytes[..bytes.len().min(BYTES_SHOWN)];
    let digits: String = shown.iter().map(|byte| format!("{byte:02x}")).collect();
    let more = if bytes.len() > BYTES_SHOWN { "..." } else { "" };
    format!("{} bytes, 0x{digits}{more}", bytes.len())
}
