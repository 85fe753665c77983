//! A workflow in one line: what is done, what stands at the head, what waits, what is missing.

use seriatim::api::views::MessageEnvelope;
use seriatim::api::views::MessageWord;
use seriatim::api::views::WorkflowEnvelope;

use crate::cli::moment::LocalTime;

/// The strip of a workflow: `..15 done | 16 FAILED 3x, again in 4m | 17-18 wait | 19 MISSING | 20 early`.
pub(crate) fn strip(
    workflow: &WorkflowEnvelope,
    messages: &[MessageEnvelope],
    present: &LocalTime,
) -> String {
    let mut pieces: Vec<Segment> = Vec::new();
    let mut next = workflow.next_position;
    let stored = messages.iter().filter(|message| message.status != MessageWord::DeadLettered);
    for (at, message) in stored.enumerate() {
        let place = message.position;
        if let (Some(expected), Some(position)) = (next, place)
            && position > expected
        {
            pieces.push(Segment { from: expected, to: position - 1, what: "MISSING".to_owned() });
        }
        let number = place.unwrap_or(message.sequence_number);
        let what = what(message, at == 0, present);
        match pieces.last_mut() {
            Some(last) if last.what == what && (place.is_none() || last.to + 1 == number) => last.to = number,
            _ => pieces.push(Segment { from: number, to: number, what }),
        }
        next = place.map(|position| position + 1);
    }
    let done = workflow.next_position.filter(|next| *next > 1).map(|next| format!("..{} done", next - 1));
    let rest = workflow.messages.saturating_sub(messages.len() as u64);
    let rest = (rest > 0).then(|| format!("and {rest} more"));
    let pieces = pieces.into_iter().map(Segment::describe);
    done.into_iter().chain(pieces).chain(rest).collect::<Vec<_>>().join(" | ")
}

/// Neighbours of which the same is said.
struct Segment {
    from: u64,
    to: u64,
    what: String,
}

impl Segment {
    fn describe(self) -> String {
        match self.from == self.to {
            true => format!("{} {}", self.from, self.what),
            false => {
                let what = if self.what == "waits" { "wait" } else { &self.what };
                format!("{}-{} {what}", self.from, self.to)
            }
        }
    }
}

/// What a message does, in a few words.
pub(crate) fn what(message: &MessageEnvelope, is_head: bool, present: &LocalTime) -> String {
    let count = message.delivery_count;
    let until = message.until.map(|until| present.age(until));
    match (message.status, until) {
        (MessageWord::Ready, _) if is_head => "ready".to_owned(),
        (MessageWord::Ready, _) => "waits".to_owned(),
        (MessageWord::Locked, Some(until)) => format!("LOCKED, its lock ends {until}"),
        (MessageWord::Locked, None) => "LOCKED".to_owned(),
        (MessageWord::Early, _) => "early".to_owned(),
        (MessageWord::Retry, Some(until)) => format!("FAILED {count}x, again {until}"),
        (MessageWord::Retry, None) | (MessageWord::Exhausted, _) => format!("FAILED {count}x, exhausted"),
        (MessageWord::ByConsumer, Some(until)) => format!("set aside, back {until}"),
        (MessageWord::ByConsumer, None) => "set aside".to_owned(),
        (MessageWord::Scheduled, Some(until)) => format!("scheduled {until}"),
        (MessageWord::Scheduled, None) => "scheduled".to_owned(),
        (MessageWord::DeadLettered, _) => "dead letter".to_owned(),
        (MessageWord::Ended, _) => "ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use serde_json::json;

    use super::*;

    fn message(position: Value, status: &str, until: Value) -> MessageEnvelope {
        serde_json::from_value(json!({
            "sequence_number": 40, "position": position, "status": status, "until": until, "delivery_count": 3,
            "accepted_at": 0,
        }))
        .unwrap()
    }

    fn workflow(next_position: Value, messages: u64) -> WorkflowEnvelope {
        serde_json::from_value(json!({
            "status": "blocked", "next_position": next_position, "messages": messages, "early": 0,
            "set_aside": 0, "dead_letters": 0, "has_state": false,
        }))
        .unwrap()
    }

    #[test]
    fn a_strip_shows_what_is_done_stuck_waiting_and_missing() {
        let present = LocalTime::at(1_000_000);
        let messages = [
            message(json!(16), "retry", json!(1_240_000)),
            message(json!(17), "ready", Value::Null),
            message(json!(18), "ready", Value::Null),
            message(json!(21), "early", Value::Null),
        ];
        let strip = strip(&workflow(json!(16), 6), &messages, &present);
        let expected =
            "..15 done | 16 FAILED 3x, again in 4m | 17-18 wait | 19-20 MISSING | 21 early | and 2 more";
        assert_eq!(strip, expected);
    }

    #[test]
    fn without_positions_numbers_are_shown_and_nothing_is_missing() {
        let present = LocalTime::at(0);
        let messages =
            [message(Value::Null, "locked", Value::Null), message(Value::Null, "ready", Value::Null)];
        assert_eq!(strip(&workflow(Value::Null, 2), &messages, &present), "40 LOCKED | 40 waits");
    }
}
