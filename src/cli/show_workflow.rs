//! The timeline of a workflow: where it stands, why, every attempt, and what happens next.

use serde::Serialize;
use serde_json::value::RawValue;
use seriatim::api::AttemptEnvelope;
use seriatim::api::DeliveryEnvelope;
use seriatim::api::views::HistoryView;
use seriatim::api::views::HoldView;
use seriatim::api::views::MessageEnvelope;
use seriatim::api::views::WorkflowEnvelope;
use seriatim::api::views::WorkflowWord;
use seriatim::remote::Remote;

use crate::cli::arguments::target::WorkflowTarget;
use crate::cli::failure::CliFailure;
use crate::cli::limits;
use crate::cli::moment::LocalTime;
use crate::cli::next;
use crate::cli::out::Stdout;
use crate::cli::out::printable;
use crate::cli::out::shortened;
use crate::cli::show_history;
use crate::cli::show_history::ended_text;
use crate::cli::show_message::output_lines;
use crate::cli::strip::strip;
use crate::cli::strip::what;
use crate::cli::table::TextTable;
use crate::cli::word::counted;
use crate::cli::word::word;

/// A workflow with all that is shown of it.
#[derive(Serialize)]
struct ShownWorkflow<'a> {
    queue: &'a str,
    workflow: &'a WorkflowEnvelope,
    /// Its state, if that is JSON: as it was set, byte for byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Box<RawValue>>,
    /// Its state as base64, if it is not JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    state_base64: Option<String>,
    messages: &'a [MessageEnvelope],
    history: &'a [HistoryView],
}

/// Shows a workflow.
pub(crate) async fn run(
    remote: &Remote,
    out: &Stdout,
    target: &WorkflowTarget,
    limit: usize,
) -> Result<(), CliFailure> {
    let failed = || CliFailure::to(format!("show {target}"));
    let (queue, id) = (&target.queue, &target.workflow_id);
    let workflow = remote.workflow(queue, id).await.map_err(failed())?;
    let Some(workflow) = workflow else {
        return Err(CliFailure::Refused(format!(
            "show {target}: nothing is known of it; it was never sent to, or is done and forgotten (a queue with \
             `history` in its definition remembers)"
        )));
    };
    let messages = remote.workflow_messages(queue, id, 0, limit).await.map_err(failed())?.messages;
    let history = remote.history(queue, Some(id), None, limit).await.map_err(failed())?.history;
    let state = match workflow.has_state {
        true => remote.state(queue, id).await.map_err(failed())?,
        false => None,
    };
    if out.json {
        let DeliveryEnvelope { state, state_base64, .. } =
            DeliveryEnvelope::default().with_state(state.as_ref());
        let (workflow, messages, history) = (&workflow, &messages, &history);
        let shown = ShownWorkflow { queue, workflow, state, state_base64, messages, history };
        return Ok(out.json(&shown)?);
    }
    let present = LocalTime::here();
    if let Some(last) = &workflow.ended {
        out.say(format!("{}: {}", printable(&target.to_string()), ended_text(last, &present)))?;
        return Ok(out.say(format!("\n{}", show_history::table(&history, &present)))?);
    }
    out.say(format!("{}: {}", printable(&target.to_string()), standing(&workflow, &present)))?;
    for hold in workflow.holds.iter().skip(1) {
        out.say(format!("  {}", also_held(hold, &present)))?;
    }
    let strip = strip(&workflow, &messages, &present);
    if !strip.is_empty() {
        out.say(format!("  {strip}"))?;
    }
    for line in next::describe(target, &workflow, &present) {
        out.say(format!("  {line}"))?;
    }
    out.say(format!("  {}", in_line(&workflow)))?;
    if workflow.has_state {
        out.say(format!("  state{}: {}", set_at(&workflow, &present), state_text(state.as_deref())))?;
    }
    if !messages.is_empty() {
        out.say(format!("\n{}", timeline(&messages, &present)))?;
    }
    for line in outputs(&messages) {
        out.say(line)?;
    }
    if !history.is_empty() {
        out.say(format!("\nended:\n{}", show_history::table(&history, &present)))?;
    }
    Ok(())
}

/// When its state was last set, if that is known.
fn set_at(workflow: &WorkflowEnvelope, present: &LocalTime) -> String {
    workflow.state_set_at.map(|at| format!(", set at {}", present.full(at))).unwrap_or_default()
}

/// What the handlers of the newest attempts wrote, the newest last.
fn outputs(messages: &[MessageEnvelope]) -> Vec<String> {
    let of_message = |message: &MessageEnvelope| {
        let number = message.sequence_number;
        message.attempts.clone().into_iter().map(move |attempt| (number, attempt))
    };
    let mut attempts: Vec<(u64, AttemptEnvelope)> = messages.iter().flat_map(of_message).collect();
    attempts.retain(|(_, attempt)| !attempt.output.is_empty() || attempt.output_cut_bytes > 0);
    attempts.sort_by_key(|(_, attempt)| attempt.at.0);
    let older = attempts.len().saturating_sub(limits::OUTPUTS_SHOWN);
    let described = |(number, attempt): &(u64, AttemptEnvelope)| {
        let heading = format!("\nattempt {} of #{number} wrote:", attempt.delivery_count);
        std::iter::once(heading).chain(output_lines(attempt)).collect::<Vec<_>>()
    };
    attempts[older..].iter().flat_map(described).collect()
}

/// Where a workflow stands, and since when.
fn standing(workflow: &WorkflowEnvelope, present: &LocalTime) -> String {
    let reason = workflow.reason.as_deref().filter(|reason| !reason.is_empty());
    let reason = reason.map(|reason| format!(": {}", printable(reason))).unwrap_or_default();
    let until = workflow.until.map(|until| format!(" until {}", present.full(until))).unwrap_or_default();
    let status = word(&workflow.status);
    match workflow.status {
        WorkflowWord::Held => {
            let since = workflow.held_since.map(|since| format!(" since {}", present.full(since)));
            let cause = workflow.hold_cause.map(|cause| format!(" ({})", word(&cause)));
            format!("HELD{}{}{reason}", since.unwrap_or_default(), cause.unwrap_or_default())
        }
        WorkflowWord::Blocked | WorkflowWord::WaitingForPredecessor => {
            format!("{}{until}{reason}", status.to_uppercase())
        }
        _ => format!("{status}{until}{reason}"),
    }
}

/// A cause that holds a workflow beside the oldest.
fn also_held(hold: &HoldView, present: &LocalTime) -> String {
    let reason = match hold.reason.is_empty() {
        true => String::new(),
        false => format!(": {}", printable(&hold.reason)),
    };
    format!("also held since {} ({}){reason}", present.full(hold.since), word(&hold.cause))
}

fn in_line(workflow: &WorkflowEnvelope) -> String {
    let WorkflowEnvelope { messages, early, set_aside, dead_letters, .. } = workflow;
    let dead_letters = counted(*dead_letters, "dead letter");
    format!("{messages} in line ({early} early), {set_aside} set aside, {dead_letters}")
}

fn state_text(state: Option<&[u8]>) -> String {
    match state.map(|state| (std::str::from_utf8(state), state.len())) {
        None => "none".to_owned(),
        Some((Ok(text), _)) => shortened(text, limits::STATE_LETTERS),
        Some((Err(_), bytes)) => format!("{bytes} bytes"),
    }
}

fn timeline(messages: &[MessageEnvelope], present: &LocalTime) -> TextTable {
    let mut table = TextTable::new(&[
        ">place",
        ">number",
        "status",
        ">handed out",
        "when",
        "message ID",
        "subject, error",
    ]);
    for (at, message) in messages.iter().enumerate() {
        let follows = || message.after.as_ref().map(|predecessor| format!("after {predecessor}"));
        let place = message.position.map(|position| position.to_string()).or_else(follows);
        table.row([
            place.unwrap_or_default(),
            message.sequence_number.to_string(),
            what(message, at == 0, present),
            message.delivery_count.to_string(),
            present.full(message.accepted_at),
            message.message_id.clone().unwrap_or_default(),
            message.subject.clone().unwrap_or_default(),
        ]);
        for attempt in &message.attempts {
            table.row([
                String::new(),
                String::new(),
                format!("  attempt {}", attempt.delivery_count),
                String::new(),
                present.full(attempt.at),
                format!("took {}", attempt.lasted),
                shortened(&attempt.reason, limits::ERROR_LETTERS),
            ]);
        }
    }
    table
}
