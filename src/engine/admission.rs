//! Whether there is room for what is asked, and how it is refused while there is too little. What is refused here does not
//! reach the rules.

use crate::engine::letter::LetterHandle;
use crate::engine::rules::records::Records;
use crate::engine::rules::room_need::RoomNeed;
use crate::engine::store::DiskRoom;
use crate::error::Fault;

/// Judges the commands of one turn by the room there is, and adds up what it has promised them.
pub(crate) struct Admission<'a> {
    room: Option<&'a DiskRoom>,
    promised_bytes: u64,
}

impl<'a> Admission<'a> {
    /// By the room of a disk; without one, everything is admitted.
    pub(crate) fn new(room: Option<&'a DiskRoom>) -> Admission<'a> {
        Admission { room, promised_bytes: 0 }
    }

    /// What was promised: to be redeemed when the turn is written.
    pub(crate) fn promised_bytes(&self) -> u64 {
        self.promised_bytes
    }

    /// Whether there is room for what is asked. If not, it is answered so, unless it is done all the same.
    pub(crate) fn admits(&mut self, letter: &LetterHandle, records: &dyn Records) -> Result<bool, Fault> {
        let Some(room) = self.room else { return Ok(true) };
        let need = letter.room(records)?;
        let admits = match need {
            RoomNeed::Nothing => true,
            RoomNeed::HeadRoom(bytes) => room.admit_from_head_room(bytes),
            RoomNeed::Room(bytes) => room.admit(bytes),
        };
        if !admits {
            return Ok(!letter.refuse_for_room());
        }
        self.promised_bytes += need.bytes();
        Ok(true)
    }
}
