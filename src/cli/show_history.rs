//! What a queue remembers of messages that have ended.

use seriatim::api::views::EndingWord;
use seriatim::api::views::HistoryView;

use crate::cli::limits;
use crate::cli::moment::LocalTime;
use crate::cli::out::shortened;
use crate::cli::table::TextTable;
use crate::cli::word::word;

/// How and when a message ended: `completed at 2027-01-31T03:12:00+01:00 (5h ago), attempt 4`.
pub(crate) fn ended_text(entry: &HistoryView, present: &LocalTime) -> String {
    let at = present.full(entry.at);
    match (entry.ending, entry.redriven_as) {
        (EndingWord::Completed, _) => format!("completed at {at}, attempt {}", entry.delivery_count),
        (EndingWord::Redriven, Some(number)) => format!("sent again as #{number} at {at}"),
        (ending, _) => format!("{} at {at}", word(&ending)),
    }
}

/// The places of an entry: one, or a range.
fn places_text(entry: &HistoryView) -> String {
    match entry.positions {
        Some((from, to)) if from < to => format!("{from}..{to}"),
        Some((from, _)) => from.to_string(),
        None => String::new(),
    }
}

/// Entries under each other, in the order in which they ended.
pub(crate) fn table(history: &[HistoryView], present: &LocalTime) -> TextTable {
    let mut table =
        TextTable::new(&[">place", ">number", "ended", ">handed out", "when", "message ID", "error"]);
    for entry in history.iter().rev() {
        table.row([
            places_text(entry),
            entry.sequence_number.map(|number| number.to_string()).unwrap_or_default(),
            word(&entry.ending),
            entry.delivery_count.to_string(),
            present.full(entry.at),
            entry.message_id.clone().unwrap_or_default(),
            shortened(entry.reason.as_deref().unwrap_or_default(), limits::ERROR_LETTERS),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_end_is_told_with_its_instant_and_its_attempt() {
        let present = LocalTime::at(60_000);
        let described = |ending: serde_json::Value| {
            let mut entry = json!({ "number": 1, "at": 0, "delivery_count": 4 });
            entry.as_object_mut().unwrap().extend(ending.as_object().unwrap().clone());
            ended_text(&serde_json::from_value(entry).unwrap(), &present)
        };
        let at = "1970-01-01T00:00:00+00:00 (1m ago)";
        assert_eq!(described(json!({ "ending": "completed" })), format!("completed at {at}, attempt 4"));
        assert_eq!(
            described(json!({ "ending": "redriven", "redriven_as": 9 })),
            format!("sent again as #9 at {at}")
        );
        assert_eq!(described(json!({ "ending": "voided" })), format!("voided at {at}"));
    }
}
