//! The line of a workflow as a picture: what is done, what stands at the head, what waits, what is missing, what is early.

use maud::Markup;
use maud::html;

use crate::api::views::EndingWord;
use crate::api::views::HistoryView;
use crate::api::views::MessageEnvelope;
use crate::api::views::MessageWord;
use crate::api::views::WorkflowEnvelope;
use crate::page::labels;
use crate::page::labels::Tone;
use crate::page::present::Present;

/// A place of the line, or neighbours with the same label.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    tone: Tone,
    sign: &'static str,
    /// `16`, `17-18`.
    place: String,
    /// What is there, in a word or two.
    what: String,
    /// What happens next, and when.
    more: Option<String>,
    /// The message that is there.
    number: Option<u64>,
    is_missing: bool,
    is_head: bool,
}

impl Cell {
    /// A place of which no more is known.
    fn bare((tone, sign): (Tone, &'static str), place: String, what: &str) -> Cell {
        let (what, more, number) = (what.to_owned(), None, None);
        Cell { tone, sign, place, what, more, number, is_missing: false, is_head: false }
    }
}

/// The cells of a workflow.
pub(crate) fn cells(
    workflow: &WorkflowEnvelope,
    messages: &[MessageEnvelope],
    ended: &[HistoryView],
    present: Present,
) -> Vec<Cell> {
    let mut cells = past(workflow, ended);
    let mut expected = workflow.next_position;
    let mut is_head = true;
    for message in messages.iter().filter(|message| message.status != MessageWord::DeadLettered) {
        if let (Some(next), Some(position)) = (expected, message.position)
            && position > next
        {
            cells.push(missing(next, position - 1, is_head));
            is_head = false;
        }
        let is_behind_hold = !workflow.holds.is_empty();
        cells.push(cell(message, is_head, is_behind_hold, present));
        is_head = false;
        expected = message.position.map(|position| position + 1);
    }
    cells
}

/// Ended messages that are in the picture; the others are below it, in the history.
const ENDED: usize = 6;

/// What is done: the last few one by one, as far as the queue remembers them.
fn past(workflow: &WorkflowEnvelope, ended: &[HistoryView]) -> Vec<Cell> {
    let ended = &ended[..ended.len().min(ENDED)];
    let mut shown: Vec<Cell> = ended.iter().rev().filter_map(ended_cell).collect();
    let first = ended.iter().filter_map(|entry| entry.positions).map(|(first, _)| first).min();
    let done = workflow.next_position.filter(|next| *next > 1).map(|next| first.unwrap_or(next));
    if let Some(done) = done.filter(|done| *done > 1) {
        shown.insert(0, Cell::bare(("good", "\u{2713}"), format!("\u{2026}{}", done - 1), "done"));
    }
    shown
}

fn ended_cell(entry: &HistoryView) -> Option<Cell> {
    let (tone, sign, what) = match entry.ending {
        // In a picture of many, the shortest word will do.
        EndingWord::Completed => ("good", "\u{2713}", "done"),
        other => labels::of_ending(other),
    };
    let place = match (entry.positions, entry.sequence_number) {
        (Some((first, last)), _) if first == last => first.to_string(),
        (Some((first, last)), _) => format!("{first}\u{2013}{last}"),
        (None, Some(number)) => format!("#{number}"),
        (None, None) => return None,
    };
    Some(Cell { number: entry.sequence_number, ..Cell::bare((tone, sign), place, what) })
}

fn missing(from: u64, to: u64, is_head: bool) -> Cell {
    let place = if from == to { from.to_string() } else { format!("{from}\u{2013}{to}") };
    Cell { is_missing: true, is_head, ..Cell::bare(("warn", "?"), place, "never came") }
}

fn cell(message: &MessageEnvelope, is_head: bool, is_held: bool, present: Present) -> Cell {
    let (tone, sign, word) = labels::of_message(message.status);
    let count = message.delivery_count;
    let (mut what, mut more) = (word.to_owned(), None);
    match (message.status, message.until) {
        (MessageWord::Ready, _) if is_head && !is_held => what = "next".to_owned(),
        (MessageWord::Ready, _) if is_held => what = "held back".to_owned(),
        (MessageWord::Retry, Some(until)) => {
            what = format!("failed {count}\u{d7}");
            more = Some(format!("again {}", present.clock(until)));
        }
        (MessageWord::Retry, None) | (MessageWord::Exhausted, _) => {
            what = format!("failed {count}\u{d7}");
            more = Some("no retry left".to_owned());
        }
        (MessageWord::Locked, Some(until)) => more = Some(format!("lock until {}", present.clock(until))),
        (MessageWord::ByConsumer | MessageWord::Scheduled, Some(until)) => {
            more = Some(format!("until {}", present.clock(until)));
        }
        _ => {}
    }
    let place = message
        .position
        .map_or_else(|| format!("#{}", message.sequence_number), |position| position.to_string());
    Cell { tone, sign, place, what, more, number: Some(message.sequence_number), is_missing: false, is_head }
}

/// The picture.
pub(crate) fn show(queue: &str, cells: &[Cell], rest: u64) -> Markup {
    html! {
        ol.strip aria-label="The line of the workflow" {
            @for cell in cells {
                li.cell.(cell.tone).missing[cell.is_missing].head[cell.is_head] {
                    @match cell.number {
                        Some(number) => a href=(labels::message_place(queue, number)) { (inside(cell)) },
                        None => div { (inside(cell)) },
                    }
                }
            }
            @if rest > 0 { li.cell.rest { div { span.place { "+" (rest) } span.what { "more" } } } }
        }
    }
}

fn inside(cell: &Cell) -> Markup {
    html! {
        span.place { (cell.place) }
        span.sign aria-hidden="true" { (cell.sign) }
        span.what { (cell.what) }
        @if let Some(more) = &cell.more { span.then { (more) } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use serde_json::json;

    use super::*;
    use crate::clock::Timestamp;

    fn message(position: u64, status: &str, until: Value) -> MessageEnvelope {
        serde_json::from_value(json!({
            "sequence_number": 40 + position, "position": position, "status": status, "until": until,
            "delivery_count": 3, "accepted_at": 0,
        }))
        .unwrap()
    }

    fn workflow(next_position: u64, messages: u64) -> WorkflowEnvelope {
        serde_json::from_value(json!({
            "status": "blocked", "next_position": next_position, "messages": messages, "early": 1,
            "set_aside": 0, "dead_letters": 0, "has_state": false,
        }))
        .unwrap()
    }

    #[test]
    fn the_picture_says_what_failed_what_waits_and_what_never_came() {
        let present = Present(Timestamp::from_millis(11_000_000));
        let line = [
            message(16, "retry", json!(11_520_000)),
            message(17, "ready", Value::Null),
            message(18, "ready", Value::Null),
            message(20, "early", Value::Null),
        ];
        let cells = cells(&workflow(16, 4), &line, &[], present);
        let described: Vec<String> = cells
            .iter()
            .map(|cell| format!("{} {} {}", cell.place, cell.what, cell.more.as_deref().unwrap_or_default()))
            .collect();
        assert_eq!(
            described,
            [
                "\u{2026}15 done ",
                "16 failed 3\u{d7} again 03:12:00 UTC",
                "17 waits ",
                "18 waits ",
                "19 never came ",
                "20 early ",
            ]
        );
        assert!(cells[1].is_head && cells[4].is_missing && !cells[4].is_head);
    }

    #[test]
    fn a_gap_at_the_head_is_the_head() {
        let present = Present(Timestamp::from_millis(0));
        let cells = cells(&workflow(1, 1), &[message(3, "early", Value::Null)], &[], present);
        assert!(cells[0].is_head && cells[0].place == "1\u{2013}2" && !cells[1].is_head);
    }
}
