//! A workflow in one line: what is done, what stands at the head, what waits, what is missing.

use seriatim::wire::views::MessageView;
use seriatim::wire::views::WorkflowView;

use crate::cli::moment::Present;

/// The strip of a workflow: `..15 done | 16 FAILED 3x, again in 4m | 17-18 wait | 19 MISSING | 20 early`.
pub(crate) fn strip(workflow: &WorkflowView, messages: &[MessageView], present: &Present) -> String {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut next = workflow.next_position;
    let stored = messages.iter().filter(|message| message.status != "dead_lettered");
    for (at, message) in stored.enumerate() {
        let place = message.message.position;
        if let (Some(expected), Some(position)) = (next, place)
            && position > expected
        {
            pieces.push(Piece::new(expected, position - 1, "MISSING".to_owned()));
        }
        let number = place.unwrap_or(message.message.sequence_number);
        let what = what(message, at == 0, present);
        match pieces.last_mut() {
            Some(last) if last.what == what && (place.is_none() || last.to + 1 == number) => last.to = number,
            _ => pieces.push(Piece::new(number, number, what)),
        }
        next = place.map(|position| position + 1);
    }
    let done = workflow.next_position.filter(|next| *next > 1).map(|next| format!("..{} done", next - 1));
    let rest = workflow.messages.saturating_sub(messages.len() as u64);
    let rest = (rest > 0).then(|| format!("and {rest} more"));
    let pieces = pieces.into_iter().map(Piece::told);
    done.into_iter().chain(pieces).chain(rest).collect::<Vec<_>>().join(" | ")
}

struct Piece {
    from: u64,
    to: u64,
    what: String,
}

impl Piece {
    fn new(from: u64, to: u64, what: String) -> Piece {
        Piece { from, to, what }
    }

    fn told(self) -> String {
        match self.from == self.to {
            true => format!("{} {}", self.from, self.what),
            false => format!("{}-{} {}", self.from, self.to, self.what),
        }
    }
}

/// What a message does, in a few words.
pub(crate) fn what(message: &MessageView, is_head: bool, present: &Present) -> String {
    let count = message.message.delivery_count;
    let until = message.until.map(|until| present.age(until));
    match (message.status.as_str(), until) {
        ("ready", _) if is_head => "ready".to_owned(),
        ("ready", _) => "waits".to_owned(),
        ("locked", Some(until)) => format!("LOCKED, its lock ends {until}"),
        ("locked", None) => "LOCKED".to_owned(),
        ("early", _) => "early".to_owned(),
        ("failed", Some(until)) => format!("FAILED {count}x, again {until}"),
        ("failed" | "spent", None) => format!("FAILED {count}x, spent"),
        ("asked", Some(until)) => format!("set aside, back {until}"),
        ("asked", None) => "set aside".to_owned(),
        ("scheduled", Some(until)) => format!("scheduled {until}"),
        (other, _) => other.replace('_', " "),
    }
}
