//! The room that copies of the file take while they are under way.

use std::path::Path;

use crate::engine::store::room::DiskRoom;
use crate::engine::store::space::Outlay;
use crate::error::OperateRefusal;

/// The room of a copy under way; given back when it is dropped.
pub(crate) struct CopyRoom {
    room: DiskRoom,
    outlay: Outlay,
}

impl CopyRoom {
    /// Refuses to go on once the disk of the file has no more than its head room, wherever the copy goes: as long as it is under
    /// way the file cannot use freed room again, and so grows with all that goes on.
    pub(crate) fn check(&self) -> Result<(), OperateRefusal> {
        let mut state = self.room.state();
        self.room.look(&mut state);
        self.room.judge(&mut state);
        match state.is_full {
            true => Err(Outlay { free_bytes: 0, ..self.outlay }.refusal()),
            false => Ok(()),
        }
    }
}

impl Drop for CopyRoom {
    fn drop(&mut self) {
        let copies_bytes = &mut self.room.state().copies_bytes;
        *copies_bytes = copies_bytes.saturating_sub(self.outlay.of_this_disk());
    }
}

impl DiskRoom {
    /// Promises room for a copy of the file, which is refused where there is none, or only the head room. Copies under way are
    /// taken to need as much as they did in the beginning.
    pub(crate) fn admit_copy(&self, target: &Path) -> Result<CopyRoom, OperateRefusal> {
        // What cannot be told is found out by trying.
        let unknown = Outlay { needed_bytes: 0, free_bytes: 0, is_same_disk: false };
        let mut outlay = self.shared.space.copy(target).unwrap_or(unknown);
        let mut state = self.state();
        if outlay.is_same_disk {
            self.look(&mut state);
            outlay.free_bytes =
                self.left(&state).saturating_sub(self.full_below()).saturating_sub(state.copies_bytes);
        }
        if outlay.free_bytes < outlay.needed_bytes {
            return Err(outlay.refusal());
        }
        state.copies_bytes += outlay.of_this_disk();
        drop(state);
        Ok(CopyRoom { room: self.clone(), outlay })
    }
}
