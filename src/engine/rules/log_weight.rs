//! What a command weighs for a log, whose entries are bounded: what it carries, and the rows of its messages.

use crate::limits;
use crate::message::NewMessage;
use crate::message::Place;

/// Adds up what one command weighs.
#[derive(Default)]
pub(crate) struct LogWeight {
    bytes: usize,
    rows: usize,
}

impl LogWeight {
    /// An entry has room for the rows of a batch beside what is bounded here; only what they take beyond that counts.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.rows.saturating_sub(limits::LOG_ROWS_BYTES)
    }

    pub(crate) fn add_bytes(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Adds bytes of rows of messages that are stored already.
    pub(crate) fn add_row_bytes(&mut self, bytes: usize) {
        self.rows += bytes;
    }

    /// Adds messages, or copies of some.
    pub(crate) fn add_messages(&mut self, messages: &[NewMessage]) {
        self.bytes += messages.iter().map(NewMessage::len).sum::<usize>();
        self.rows += messages.iter().map(rows_of).sum::<usize>();
    }
}

/// At least as many bytes as the rows of a message have, beside its body and headers.
fn rows_of(message: &NewMessage) -> usize {
    let workflow = message.workflow_id.as_ref().map_or(0, |id| id.as_str().len());
    let own = message.message_id.as_ref().map_or(0, |id| id.as_str().len());
    // The ID of its workflow is in the rows of the message, of its place, of the workflow and of what is ready; its own in the first
    // of these, where it is remembered, and when it is forgotten.
    let rows = limits::LOG_MESSAGE_ROWS_BYTES + 4 * workflow + 3 * own;
    match &message.place {
        // All three are in the rows of its chain, too.
        Place::After(before) => {
            let before = before.as_ref().map_or(0, |id| id.as_str().len());
            rows + 4 * workflow + own + 3 * before
        }
        _ => rows,
    }
}
