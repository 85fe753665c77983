//! The timeline of a workflow: where it stands, why, every attempt, and what happens next.

use serde_json::json;
use seriatim::remote::Remote;
use seriatim::wire::views::MessageView;
use seriatim::wire::views::WorkflowView;

use crate::cli::arguments::target::WorkflowTarget;
use crate::cli::failure::Failure;
use crate::cli::limits;
use crate::cli::moment::Present;
use crate::cli::next;
use crate::cli::out::Out;
use crate::cli::out::printable;
use crate::cli::out::shortened;
use crate::cli::strip::strip;
use crate::cli::strip::what;
use crate::cli::table::Table;

/// Shows a workflow.
pub(crate) async fn run(
    remote: &Remote,
    out: &Out,
    target: &WorkflowTarget,
    limit: usize,
) -> Result<(), Failure> {
    let failed = || Failure::to(format!("show {target}"));
    let (queue, id) = (&target.queue, &target.workflow_id);
    let workflow = remote.workflow(queue, id).await.map_err(failed())?;
    let Some(workflow) = workflow else {
        return Err(Failure::Refused(format!(
            "show {target}: nothing is known of it; it was never sent to, or is done and forgotten"
        )));
    };
    let messages = remote.workflow_messages(queue, id, 0, limit).await.map_err(failed())?.messages;
    if out.json {
        return Ok(out.json(&json!({ "queue": queue, "workflow": workflow, "messages": messages }))?);
    }
    let present = Present::here();
    out.say(format!("{}: {}", printable(&target.to_string()), standing(&workflow, &present)))?;
    let strip = strip(&workflow, &messages, &present);
    if !strip.is_empty() {
        out.say(format!("  {strip}"))?;
    }
    for line in next::told(target, &workflow, &present) {
        out.say(format!("  {line}"))?;
    }
    out.say(format!("  {}", counted(&workflow)))?;
    if workflow.has_state {
        let state = remote.state(queue, id).await.map_err(failed())?;
        out.say(format!("  state: {}", state_told(state.as_deref())))?;
    }
    if !messages.is_empty() {
        out.say(format!("\n{}", timeline(&messages, &present)))?;
    }
    Ok(())
}

/// Where a workflow stands, and since when.
fn standing(workflow: &WorkflowView, present: &Present) -> String {
    if let Some(hold) = &workflow.hold {
        let about = hold.sequence_number.map(|number| format!(", message {number}")).unwrap_or_default();
        let reason =
            if hold.reason.is_empty() { String::new() } else { format!(": {}", printable(&hold.reason)) };
        return format!("HELD since {} ({}{about}){reason}", present.full(hold.since), hold.cause);
    }
    let reason =
        workflow.reason.as_deref().map(|reason| format!(": {}", printable(reason))).unwrap_or_default();
    let until = workflow.until.map(|until| format!(" until {}", present.full(until))).unwrap_or_default();
    match workflow.status.as_str() {
        status @ ("blocked" | "waiting_for_predecessor") => {
            format!("{}{until}{reason}", status.to_uppercase().replace('_', " "))
        }
        status => format!("{}{until}{reason}", status.replace('_', " ")),
    }
}

fn counted(workflow: &WorkflowView) -> String {
    let WorkflowView { messages, early, set_aside, dead_letters, .. } = workflow;
    format!("{messages} in line ({early} early), {set_aside} set aside, {dead_letters} dead letters")
}

fn state_told(state: Option<&[u8]>) -> String {
    match state.map(|state| (std::str::from_utf8(state), state.len())) {
        None => "none".to_owned(),
        Some((Ok(text), _)) => shortened(text, limits::STATE_LETTERS),
        Some((Err(_), bytes)) => format!("{bytes} bytes"),
    }
}

fn timeline(messages: &[MessageView], present: &Present) -> Table {
    let mut table =
        Table::new(&[">place", ">number", "status", ">handed out", "when", "message ID", "subject, error"]);
    for (at, message) in messages.iter().enumerate() {
        let envelope = &message.message;
        let place = envelope.position.map(|position| position.to_string());
        table.row([
            place.unwrap_or_default(),
            envelope.sequence_number.to_string(),
            what(message, at == 0, present),
            envelope.delivery_count.to_string(),
            envelope.accepted_at.map(|at| present.full(at)).unwrap_or_default(),
            envelope.message_id.clone().unwrap_or_default(),
            envelope.subject.clone().unwrap_or_default(),
        ]);
        for attempt in &envelope.attempts {
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
