//! What a command takes of the room that there is for rows. Whether there is so much is judged elsewhere: the rules know
//! nothing of disks.

use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::StateChange;
use crate::limits;

/// What a command takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoomNeed {
    /// Little, and in the end it makes room.
    Nothing,
    /// So many bytes with which something ends: out of the head room, as long as there is more than a rest of it.
    HeadRoom(u64),
    /// So many bytes for something new.
    Room(u64),
}

impl RoomNeed {
    /// Room for new messages with so many bytes of bodies and headers.
    pub(crate) fn of_messages(bytes: usize, messages: usize) -> RoomNeed {
        RoomNeed::Room(cost(bytes, messages))
    }

    /// What a completion takes that carries so many bytes.
    pub(crate) fn of_completion(bytes: usize, completion: &CompletionCommand) -> RoomNeed {
        let sent = completion.sends.iter().map(|(_, messages)| messages.len()).sum();
        match &completion.state {
            StateChange::Set(state) => {
                RoomNeed::HeadRoom(cost(bytes, sent + 1) + limits::ROOM_PER_BYTE * state.len() as u64)
            }
            _ if sent > 0 => RoomNeed::HeadRoom(cost(bytes, sent)),
            _ => RoomNeed::Nothing,
        }
    }

    /// What a new state of a workflow takes.
    pub(crate) fn of_state(state: Option<&[u8]>) -> RoomNeed {
        state.map_or(RoomNeed::Nothing, |state| RoomNeed::HeadRoom(cost(state.len(), 1)))
    }

    pub(crate) fn bytes(self) -> u64 {
        match self {
            RoomNeed::Nothing => 0,
            RoomNeed::HeadRoom(bytes) | RoomNeed::Room(bytes) => bytes,
        }
    }
}

fn cost(bytes: usize, messages: usize) -> u64 {
    limits::ROOM_PER_BYTE * bytes as u64 + limits::ROOM_PER_MESSAGE * messages as u64
}
