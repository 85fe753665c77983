//! What happens next to a workflow, and what somebody could do about it.

use seriatim::api::views::GapView;
use seriatim::api::views::WorkflowEnvelope;
use seriatim::api::views::WorkflowWord;
use seriatim::queue::HoldKind;

use crate::cli::arguments::target::WorkflowTarget;
use crate::cli::moment::LocalTime;
use crate::cli::shell::quoted;

/// One line that says what happens by itself, and one for each command that would help.
pub(crate) fn describe(
    target: &WorkflowTarget,
    workflow: &WorkflowEnvelope,
    present: &LocalTime,
) -> Vec<String> {
    let named = quoted(&target.to_string());
    let mut lines = vec![format!("next: {}", by_itself(workflow, present))];
    lines.extend(commands(workflow).into_iter().map(|(command, effect)| {
        let command =
            command.replace("FROM..TO", &missing(workflow.gap.as_ref())).replace("WORKFLOW", &named);
        format!("      seriatim {command}   {effect}")
    }));
    lines
}

fn by_itself(workflow: &WorkflowEnvelope, present: &LocalTime) -> String {
    let until = workflow.until.map(|until| present.full(until));
    if let Some(until) = workflow.rate_limited_until {
        return format!(
            "its first message goes to the next receiver, when the rate allows it: {}",
            present.full(until)
        );
    }
    match (workflow.status, until) {
        (WorkflowWord::Ready, _) => "its first message goes to the next receiver".to_owned(),
        (WorkflowWord::Locked, Some(until)) => {
            format!("its holder settles it, or it is offered again {until}")
        }
        (WorkflowWord::Locked, None) => "its holder settles it".to_owned(),
        (WorkflowWord::Blocked, Some(until)) => format!("its first message is tried again {until}"),
        (WorkflowWord::Scheduled, Some(until)) => format!("its first message is due {until}"),
        (WorkflowWord::WaitingForPredecessor, _) => gap_text(workflow.gap.as_ref(), present),
        (WorkflowWord::Held, _) if workflow.hold_cause == Some(HoldKind::Redriving) => {
            "it goes on once its dead letters are back in place".to_owned()
        }
        (WorkflowWord::Held | WorkflowWord::Blocked, _) => "nothing, until somebody acts".to_owned(),
        (WorkflowWord::Scheduled | WorkflowWord::Idle | WorkflowWord::Ended, _) => {
            "nothing is to be handed out".to_owned()
        }
    }
}

/// What is missing, and when the queue's gap policy acts.
pub(crate) fn gap_text(gap: Option<&GapView>, present: &LocalTime) -> String {
    let Some(gap) = gap else { return "the missing message comes".to_owned() };
    let missing = match (gap.first_missing, gap.first_waiting) {
        (Some(from), Some(waiting)) if waiting > from + 1 => {
            format!("positions {from} to {} come", waiting - 1)
        }
        (Some(position), _) => format!("position {position} comes"),
        _ => match &gap.missing_predecessor {
            Some(id) => format!("the missing predecessor {id:?} comes"),
            None => "the missing predecessor comes".to_owned(),
        },
    };
    match gap.due {
        Some(due) => format!("{missing}, or the queue's gap policy acts {}", present.full(due)),
        None => format!("{missing}, or somebody acts"),
    }
}

/// Commands that would help, and what each does.
fn commands(workflow: &WorkflowEnvelope) -> Vec<(&'static str, &'static str)> {
    const RETRY: (&str, &str) = ("retry WORKFLOW", "tries it now");
    const SKIP: (&str, &str) = ("skip WORKFLOW --reason ..", "dead-letters it and goes on");
    const VOID: (&str, &str) = ("gap void WORKFLOW FROM..TO --reason ..", "nobody will send these positions");
    const SKIP_GAP: (&str, &str) = ("gap skip WORKFLOW --reason ..", "goes on without them");
    const SKIP_STRAY: (&str, &str) =
        ("gap skip WORKFLOW --reason ..", "dead-letters the message whose predecessor is missing");
    const RESUME: (&str, &str) = ("resume WORKFLOW", "lets it go on");
    const REDRIVE: (&str, &str) =
        ("resume WORKFLOW --redrive", "puts its dead letters back in place, and goes on");
    const RESUME_FOR: (&str, &str) = ("resume WORKFLOW --cause CAUSE", "lifts one cause");
    const RESUME_ALL: (&str, &str) = ("resume WORKFLOW", "lifts every cause and lets it go on");
    const UNLOCK: (&str, &str) = ("unlock WORKFLOW", "takes it from its holder");
    // Without positions there is nothing to declare void: a message waits for another that it names.
    let by_position = workflow.next_position.is_some();
    let gap = || if by_position { vec![VOID, SKIP_GAP] } else { vec![SKIP_STRAY] };
    let of_cause = |cause: HoldKind| match cause {
        HoldKind::Exhausted => vec![RETRY, SKIP],
        HoldKind::Gap => [gap(), vec![RESUME]].concat(),
        HoldKind::Quarantine | HoldKind::Predecessor => vec![REDRIVE, RESUME],
        HoldKind::Redriving => Vec::new(),
        _ => vec![RESUME],
    };
    match (workflow.status, workflow.hold_cause) {
        (WorkflowWord::Held, _) if workflow.holds.len() > 1 => {
            let mut commands: Vec<(&str, &str)> =
                workflow.holds.iter().flat_map(|hold| of_cause(hold.cause)).collect();
            commands.retain(|command| *command != RESUME);
            commands.extend([RESUME_FOR, RESUME_ALL]);
            commands
        }
        (_, Some(cause)) => of_cause(cause),
        (WorkflowWord::Blocked, None) => vec![RETRY, SKIP],
        (WorkflowWord::WaitingForPredecessor, None) => gap(),
        (WorkflowWord::Locked, None) => vec![UNLOCK],
        _ => Vec::new(),
    }
}

/// The missing positions as an argument, if they are known.
fn missing(gap: Option<&GapView>) -> String {
    match gap.and_then(|gap| gap.first_missing.zip(gap.first_waiting)) {
        Some((from, waiting)) => format!("{from}..{}", waiting.saturating_sub(1).max(from)),
        None => "FROM..TO".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn somebody_who_is_stuck_is_told_the_commands_that_help() {
        let workflow = serde_json::from_value(json!({
            "status": "held", "hold_cause": "gap", "held_since": 0, "messages": 2, "early": 2, "set_aside": 0,
            "dead_letters": 0, "has_state": false, "next_position": 19,
            "gap": { "first_missing": 19, "first_waiting": 23, "since": 0 },
        }));
        let target: WorkflowTarget = "orders/order 17".parse().unwrap();
        let described = describe(&target, &workflow.unwrap(), &LocalTime::at(0));
        let expected = [
            "next: nothing, until somebody acts",
            "      seriatim gap void 'orders/order 17' 19..22 --reason ..   nobody will send these positions",
            "      seriatim gap skip 'orders/order 17' --reason ..   goes on without them",
            "      seriatim resume 'orders/order 17'   lets it go on",
        ];
        assert_eq!(described, expected);
    }

    #[test]
    fn in_after_order_the_missing_predecessor_is_named_and_no_position_is_declared_void() {
        for status in ["waiting_for_predecessor", "held"] {
            let cause = if status == "held" { json!("gap") } else { json!(null) };
            let workflow = serde_json::from_value(json!({
                "status": status, "hold_cause": cause, "messages": 1, "early": 1, "set_aside": 0, "dead_letters": 0,
                "has_state": false, "gap": { "missing_predecessor": "m-7", "since": 0 },
            }));
            let described =
                describe(&"orders/a".parse().unwrap(), &workflow.unwrap(), &LocalTime::at(0)).join("\n");
            assert!(
                described.contains("seriatim gap skip orders/a --reason ..   dead-letters the message"),
                "{described}"
            );
            assert!(!described.contains("gap void"), "{described}");
            assert!(
                status == "held" || described.contains("the missing predecessor \"m-7\" comes"),
                "{described}"
            );
        }
    }

    #[test]
    fn what_waits_for_a_rate_is_not_said_to_go_to_the_next_receiver_at_once() {
        let workflow = serde_json::from_value(json!({
            "status": "ready", "messages": 1, "early": 0, "set_aside": 0, "dead_letters": 0, "has_state": false,
            "rate_limited_until": "1970-01-01T00:00:19Z",
        }));
        assert_eq!(
            describe(&"orders/a".parse().unwrap(), &workflow.unwrap(), &LocalTime::at(0)),
            [
                "next: its first message goes to the next receiver, when the rate allows it: 1970-01-01T00:00:19+00:00 (in 19s)"
            ]
        );
    }
}
