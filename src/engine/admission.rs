//! What a command takes of the disk, and how it is refused while there is too little of it. The rules know nothing of
//! disks: what is refused here does not reach them.

use crate::engine::rules::command::Command;
use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::Reply;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::command::StateChange;
use crate::engine::rules::records::Records;
use crate::engine::rules::topic_record::TopicChange;
use crate::engine::store::DiskRoom;
use crate::error::Fault;
use crate::error::OperateRefusal;
use crate::error::QueueRefusal;
use crate::error::SendRefusal;
use crate::error::SettleRefusal;
use crate::error::TopicRefusal;
use crate::id::QueueName;
use crate::limits;
use crate::queue::QueueOptions;

/// What a command takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoomNeed {
    /// Little, and in the end it makes room.
    Nothing,
    /// So many bytes with which something ends: out of the head room, as long as there is more than a rest of it.
    HeadRoom(u64),
    /// So many bytes for something new.
    Room(u64),
}

impl RoomNeed {
    fn bytes(self) -> u64 {
        match self {
            RoomNeed::Nothing => 0,
            RoomNeed::HeadRoom(bytes) | RoomNeed::Room(bytes) => bytes,
        }
    }
}

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

    /// The refusal of a command for which there is no room.
    pub(crate) fn refuse(
        &mut self,
        command: &Command,
        records: &dyn Records,
    ) -> Result<Option<Reply>, Fault> {
        let Some(room) = self.room else { return Ok(None) };
        let (admits, bytes) = match need(command, records)? {
            RoomNeed::Nothing => return Ok(None),
            RoomNeed::HeadRoom(bytes) => (room.admit_from_head_room(bytes), bytes),
            RoomNeed::Room(bytes) => (room.admit(bytes), bytes),
        };
        if !admits {
            return Ok(refusal(command));
        }
        self.promised_bytes += bytes;
        Ok(None)
    }
}

fn need(command: &Command, records: &dyn Records) -> Result<RoomNeed, Fault> {
    Ok(match command {
        Command::Send { messages, .. }
        | Command::SendEach { messages, .. }
        | Command::SendOnce { messages, .. } => RoomNeed::Room(cost(command, messages.len())),
        Command::Publish { fanout, .. } | Command::PublishOnce { fanout, .. } => {
            RoomNeed::Room(cost(command, fanout.copies.iter().map(|(_, messages)| messages.len()).sum()))
        }
        Command::ChangeTopic { change: TopicChange::Delete, .. } => RoomNeed::Nothing,
        Command::ChangeTopic { name, .. } => {
            // The row is written anew.
            let before = records.topic(name)?.map_or(0, |topic| topic.bytes());
            RoomNeed::Room(cost(command, 1) + limits::ROOM_PER_BYTE * before as u64)
        }
        Command::CreateQueue { name, options } | Command::ChangeQueue { name, options } => {
            match is_defined_so(name, options, records)? {
                true => RoomNeed::Nothing,
                false => RoomNeed::Room(cost(command, 1)),
            }
        }
        Command::Settle { settlement: Settlement::Complete(completion), .. } => {
            of_completion(command, completion)
        }
        Command::SettleRun { settlement, .. } => of_completion(command, &settlement.completion),
        Command::SetState { state: Some(state), .. } | Command::SetTakenState { state: Some(state), .. } => {
            RoomNeed::HeadRoom(limits::ROOM_PER_BYTE * state.len() as u64 + limits::ROOM_PER_MESSAGE)
        }
        Command::HideAgain { body: Some(_), .. } => RoomNeed::HeadRoom(cost(command, 1)),
        // The original stays beside what is written.
        Command::EditAndRedrive { .. } => RoomNeed::Room(cost(command, 2)),
        Command::OnRecord { command, .. } => need(command, records)?,
        Command::Transact { steps } => {
            let mut bytes = 0;
            for step in steps {
                bytes += need(step, records)?.bytes();
            }
            let ends = |step: &Command| matches!(step, Command::Settle { .. });
            match bytes {
                0 => RoomNeed::Nothing,
                _ if steps.iter().any(ends) => RoomNeed::HeadRoom(bytes),
                _ => RoomNeed::Room(bytes),
            }
        }
        _ => RoomNeed::Nothing,
    })
}

/// Whether there is such a queue already, so that nothing changes: a daemon that starts says again what is defined.
fn is_defined_so(name: &QueueName, options: &QueueOptions, records: &dyn Records) -> Result<bool, Fault> {
    Ok(records.queue_named(name)?.is_some_and(|queue| queue.options == *options))
}

fn of_completion(command: &Command, completion: &CompletionCommand) -> RoomNeed {
    let sent = completion.sends.iter().map(|(_, messages)| messages.len()).sum();
    match &completion.state {
        StateChange::Set(state) => {
            RoomNeed::HeadRoom(cost(command, sent + 1) + limits::ROOM_PER_BYTE * state.len() as u64)
        }
        _ if sent > 0 => RoomNeed::HeadRoom(cost(command, sent)),
        _ => RoomNeed::Nothing,
    }
}

fn cost(command: &Command, messages: usize) -> u64 {
    limits::ROOM_PER_BYTE * command.bytes() as u64 + limits::ROOM_PER_MESSAGE * messages as u64
}

fn refusal(command: &Command) -> Option<Reply> {
    Some(match command {
        Command::Send { .. } | Command::SendOnce { .. } | Command::Publish { .. } => {
            Reply::Send(Err(SendRefusal::StorageFull))
        }
        Command::PublishOnce { .. } => Reply::PublishOnce(Err(SendRefusal::StorageFull)),
        Command::SendEach { messages, .. } => {
            Reply::SendEach(messages.iter().map(|_| Err(SendRefusal::StorageFull)).collect())
        }
        Command::CreateQueue { name, .. } | Command::ChangeQueue { name, .. } => {
            Reply::Queue(Err(QueueRefusal::StorageFull(name.clone())))
        }
        Command::ChangeTopic { name, .. } => Reply::Topic(Err(TopicRefusal::StorageFull(name.clone()))),
        Command::Settle { .. } | Command::SettleRun { .. } | Command::SetTakenState { .. } => {
            Reply::Settle(Err(SettleRefusal::Send(SendRefusal::StorageFull)))
        }
        Command::HideAgain { .. } => Reply::HideAgain(Err(SettleRefusal::Send(SendRefusal::StorageFull))),
        Command::EditAndRedrive { .. } => Reply::Redrive(Err(OperateRefusal::Send(SendRefusal::StorageFull))),
        Command::SetState { .. } => Reply::Operate(Err(OperateRefusal::Send(SendRefusal::StorageFull))),
        Command::OnRecord { command, .. } => return refusal(command),
        Command::Transact { steps } => {
            let refused = |(index, step)| Some((index, Box::new(refusal(step)?)));
            Reply::Transact(Err(steps.iter().enumerate().find_map(refused)?))
        }
        _ => return None,
    })
}
