//! The room in which journal rows are on their way to the disk: it comes back once they are written.

use std::ops::Deref;
use std::sync::Arc;

use crate::limits;
use crate::mutex::Mutex;

/// Rooms that are kept: for the rows of a commit, for one behind them, and for the one that is being put together.
const ROOMS_MAX: usize = 2 + limits::TURNS_A_COMMIT;

/// Room for journal rows that nobody uses, shared by who puts them together and who writes them: new room costs a fault for each of
/// its pages.
#[derive(Clone, Default)]
pub(crate) struct RowRoom(Arc<Mutex<Vec<Vec<u8>>>>);

impl RowRoom {
    /// Empty room, as much as was needed before if there is any.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.0.lock().pop().unwrap_or_default()
    }

    /// A row that was put together in such room.
    pub(crate) fn filled(&self, bytes: Vec<u8>) -> JournalRow {
        JournalRow { bytes, room: self.clone() }
    }
}

/// The bytes of a journal row. Dropped, they give their room back.
pub(crate) struct JournalRow {
    bytes: Vec<u8>,
    room: RowRoom,
}

impl Deref for JournalRow {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for JournalRow {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        let mut kept = self.room.0.lock();
        if kept.len() < ROOMS_MAX && bytes.capacity() <= limits::JOURNAL_ROOM_KEPT {
            kept.push(bytes);
        }
    }
}
