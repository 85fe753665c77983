//! What happens next to a workflow, and what somebody could do about it.

use seriatim::wire::views::GapView;
use seriatim::wire::views::HoldView;
use seriatim::wire::views::WorkflowView;

use crate::cli::arguments::target::WorkflowTarget;
use crate::cli::moment::Present;

/// One line that says what happens by itself, and one for each command that would help.
pub(crate) fn told(target: &WorkflowTarget, workflow: &WorkflowView, present: &Present) -> Vec<String> {
    let named = quoted(&target.to_string());
    let mut lines = vec![format!("next: {}", by_itself(workflow, present))];
    lines.extend(commands(workflow).into_iter().map(|(command, effect)| {
        let command = command.replace("WORKFLOW", &named);
        format!("      seriatim {command}   {effect}")
    }));
    lines
}

fn by_itself(workflow: &WorkflowView, present: &Present) -> String {
    let until = workflow.until.map(|until| present.full(until));
    match (workflow.status.as_str(), until) {
        ("ready", _) => "its first message goes to the next receiver".to_owned(),
        ("locked", Some(until)) => format!("its holder settles it, or it is offered again {until}"),
        ("locked", None) => "its holder settles it".to_owned(),
        ("blocked", Some(until)) => format!("its first message is tried again {until}"),
        ("scheduled", Some(until)) => format!("its first message is due {until}"),
        ("waiting_for_predecessor", _) => gap_told(workflow.gap.as_ref(), present),
        ("held" | "blocked", _) => "nothing, until somebody acts".to_owned(),
        _ => "nothing is stored, so nothing".to_owned(),
    }
}

/// What is missing, and when the queue's gap policy acts.
pub(crate) fn gap_told(gap: Option<&GapView>, present: &Present) -> String {
    let Some(gap) = gap else { return "the missing message comes".to_owned() };
    let missing = match (gap.first_missing, gap.first_waiting) {
        (Some(from), Some(waiting)) if waiting > from + 1 => format!("positions {from} to {}", waiting - 1),
        (Some(position), _) => format!("position {position}"),
        _ => "the missing predecessor".to_owned(),
    };
    match gap.due {
        Some(due) => format!("{missing} comes, or the queue's gap policy acts {}", present.full(due)),
        None => format!("{missing} comes, or somebody acts"),
    }
}

/// Commands that would help, and what each does.
fn commands(workflow: &WorkflowView) -> Vec<(&'static str, &'static str)> {
    const RETRY: (&str, &str) = ("retry WORKFLOW", "tries it now");
    const SKIP: (&str, &str) = ("skip WORKFLOW --reason ..", "dead-letters it and goes on");
    const VOID: (&str, &str) = ("gap void WORKFLOW FROM..TO --reason ..", "nobody will send these positions");
    const SKIP_GAP: (&str, &str) = ("gap skip WORKFLOW", "goes on without them");
    const RESUME: (&str, &str) = ("resume WORKFLOW", "lets it go on");
    const REDRIVE: (&str, &str) =
        ("resume WORKFLOW --redrive", "puts its dead letters back in place, and goes on");
    const UNLOCK: (&str, &str) = ("unlock WORKFLOW", "takes it from its holder");
    let cause = workflow.hold.as_ref().map(|HoldView { cause, .. }| cause.as_str());
    match (workflow.status.as_str(), cause) {
        (_, Some("spent")) => vec![RETRY, SKIP, RESUME],
        (_, Some("gap")) => vec![VOID, SKIP_GAP, RESUME],
        (_, Some("quarantine" | "predecessor")) => vec![REDRIVE, RESUME],
        (_, Some("redriving")) => Vec::new(),
        (_, Some(_)) => vec![RESUME],
        ("blocked", None) => vec![RETRY, SKIP],
        ("waiting_for_predecessor", None) => vec![VOID, SKIP_GAP],
        ("locked", None) => vec![UNLOCK],
        _ => Vec::new(),
    }
}

/// As a shell reads it back: workflow IDs may hold anything.
fn quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@%+=,".contains(letter);
    match text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workflow_id_is_quoted_for_the_shell() {
        assert_eq!(quoted("orders/4711"), "orders/4711");
        assert_eq!(quoted("orders/it's $HOME"), "'orders/it'\\''s $HOME'");
    }
}
