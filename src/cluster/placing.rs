//! Which partition a command belongs to, by what it says.

use crate::cluster::hashing::partition_of;
use crate::cluster::hashing::partition_of_text;
use crate::engine::elsewhere::Command;
use crate::engine::elsewhere::CompletionCommand;
use crate::engine::elsewhere::Fanout;
use crate::engine::elsewhere::PurgeFrom;
use crate::engine::elsewhere::PurgeScope;
use crate::engine::elsewhere::Settlement;
use crate::engine::elsewhere::StepCommand;
use crate::id::IdempotencyKey;
use crate::id::MessageId;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;
use crate::message::NewMessage;
use crate::own_queues::OUTBOX_QUEUE;
use crate::token::LockToken;

/// Where a command is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandPlace {
    /// In this partition.
    One(u16),
    /// In any partition, and in one.
    Any,
    /// In all partitions: what queues there are.
    Each,
    /// In whichever partition there is work.
    Work,
    /// In several partitions, each its part.
    Parts,
    /// Nowhere, and why.
    Nowhere(&'static str),
}

/// The partition that says whether a queue can be what it is to be, and has operators' changes of queues in its audit.
pub(crate) const ARBITER: u16 = 0;

const SEVERAL: &str = "what is done together has to be of workflows of one partition, and this is of several";

/// Says where things are done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartitionMap {
    pub(crate) partitions: u16,
}

impl CommandPlace {
    /// Where two things are done that are done together.
    fn and(self, other: CommandPlace) -> CommandPlace {
        match (self, other) {
            (CommandPlace::Nowhere(why), _) | (_, CommandPlace::Nowhere(why)) => CommandPlace::Nowhere(why),
            (CommandPlace::Any, place) | (place, CommandPlace::Any) => place,
            (one, other) if one == other => one,
            _ => CommandPlace::Nowhere(SEVERAL),
        }
    }
}

impl PartitionMap {
    /// Where a command is done.
    pub(crate) fn of(self, command: &Command) -> CommandPlace {
        match command {
            Command::CreateQueue(_)
            | Command::ChangeQueue(_)
            | Command::DeleteQueue(_)
            | Command::PauseQueue(_)
            | Command::ChangeTopic(_) => CommandPlace::Each,
            Command::Publish(verb) => self.of_origins(&verb.topic, &verb.fanout),
            Command::PublishOnce(verb) => {
                self.once(self.of_origins(&verb.topic, &verb.fanout), &verb.topic, &verb.key)
            }
            Command::Send(verb) => self.of_messages(&verb.queue, &verb.messages),
            Command::SendOnce(verb) => {
                self.once(self.of_messages(&verb.queue, &verb.messages), &verb.queue, &verb.key)
            }
            Command::HandOver(verb) => self.of_messages(&verb.queue, std::slice::from_ref(&verb.message)),
            Command::SendEach(_) | Command::CompleteAll(_) => CommandPlace::Parts,
            Command::Cancel(verb) => self.of_number(verb.sequence),
            Command::Reschedule(verb) => self.of_number(verb.sequence),
            Command::Transact(verb) => self.of_steps(&verb.steps),
            Command::Receive(_)
            | Command::ReceiveRun(_)
            | Command::ReceiveDeadLetters(_)
            | Command::ReceiveHidden(_) => CommandPlace::Work,
            Command::AcceptWorkflow(verb) => match &verb.workflow {
                Some(id) => self.of_workflow(&verb.queue, id),
                None => CommandPlace::Work,
            },
            Command::ReceiveDeferred(verb) => self.of_numbers(&verb.sequences),
            Command::ReceiveDeferredDeadLetters(verb) => self.of_numbers(&verb.sequences),
            Command::ReceiveFromWorkflow(verb) => self.of_token(verb.token),
            Command::ReceiveDeferredFromWorkflow(verb) => self.of_token(verb.token),
            Command::Settle(verb) => self.of_token(verb.token).and(self.of_settlement(&verb.settlement)),
            Command::SettleRun(verb) => {
                self.of_token(verb.token).and(self.of_completion(&verb.settlement.completion))
            }
            Command::Renew(verb) => self.of_token(verb.token),
            Command::SettleApart(verb) => self.of_token(verb.token),
            Command::SetWorkflowState(verb) => self.of_token(verb.token),
            Command::CloseWorkflow(verb) => self.of_token(verb.token),
            Command::HideAgain(verb) => self.of_number(verb.claim.sequence_number),
            Command::EndHidden(verb) => self.of_number(verb.claim.sequence_number),
            Command::SetState(verb) => self.of_workflow(&verb.queue, &verb.workflow),
            Command::Operate(verb) => self.of_workflow(&verb.queue, &verb.workflow),
            Command::Redrive(verb) => self.of_number(verb.sequence),
            Command::EditAndRedrive(verb) => self.of_number(verb.edit.sequence),
            Command::Purge(verb) => match &verb.scope {
                PurgeScope::Workflow(id) => self.of_workflow(&verb.queue, id),
                PurgeScope::DeadLetter(sequence) => self.of_number(*sequence),
                PurgeScope::Everything | PurgeScope::DeadLetters => self.of_purge(&verb.from),
            },
            Command::OnRecord(on_record) => self.of(&on_record.command),
            Command::Remind(_) | Command::ExpireLock(_) | Command::Recover(_) => {
                CommandPlace::Nowhere("each engine asks that of itself")
            }
        }
    }

    /// Where something is done once under a key: whoever asks again has to find the answer.
    fn once(self, place: CommandPlace, queue: &QueueName, key: &IdempotencyKey) -> CommandPlace {
        match place {
            CommandPlace::Any => CommandPlace::One(self.of_text(queue, key.as_str())),
            place => place,
        }
    }

    /// The partition of a workflow.
    pub(crate) fn workflow(self, queue: &QueueName, id: &WorkflowId) -> u16 {
        partition_of(queue, id, self.partitions)
    }

    /// The partition in which a message was given its number.
    pub(crate) fn number(self, sequence: SequenceNumber) -> u16 {
        self.within(sequence.get() / limits::NUMBER_END)
    }

    /// The partition that has given a token. Whatever else somebody makes up is refused by that.
    pub(crate) fn token(self, token: LockToken) -> u16 {
        self.within(token.partition().into())
    }

    /// Where one message is sent: all of a workflow to one partition, and what is sent again to the same as the first time.
    pub(crate) fn message(self, queue: &QueueName, message: &NewMessage) -> CommandPlace {
        self.of_ids(queue, (message.workflow_id.as_ref(), message.message_id.as_ref()))
    }

    /// The partition of each message or delivery of a command that is done in parts.
    pub(crate) fn parts(self, command: &Command, any: impl Fn() -> u16) -> Vec<u16> {
        let sent = |queue: &QueueName, message: &NewMessage| match self.message(queue, message) {
            CommandPlace::One(partition) => partition,
            _ => any(),
        };
        match command {
            Command::SendEach(verb) => {
                verb.messages.iter().map(|message| sent(&verb.queue, message)).collect()
            }
            Command::CompleteAll(verb) => {
                verb.deliveries.iter().map(|delivery| self.token(delivery.token)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn of_ids(self, queue: &QueueName, ids: (Option<&WorkflowId>, Option<&MessageId>)) -> CommandPlace {
        match ids {
            (Some(workflow), _) => self.of_workflow(queue, workflow),
            (None, Some(id)) => CommandPlace::One(self.of_text(queue, id.as_str())),
            (None, None) => CommandPlace::Any,
        }
    }

    /// Where what is sent to a topic is done: where its messages belong as they were sent, whoever wants them, so that whoever asks
    /// again comes to the same partition.
    fn of_origins(self, topic: &QueueName, fanout: &Fanout) -> CommandPlace {
        let places = fanout
            .origins
            .iter()
            .map(|origin| self.of_ids(topic, (origin.workflow_id.as_ref(), origin.message_id.as_ref())));
        places.fold(CommandPlace::Any, CommandPlace::and)
    }

    fn within(self, partition: u64) -> u16 {
        u16::try_from(partition % u64::from(self.partitions)).expect("it is less than their number")
    }

    fn of_text(self, queue: &QueueName, text: &str) -> u16 {
        partition_of_text(queue, text, self.partitions)
    }

    fn of_workflow(self, queue: &QueueName, id: &WorkflowId) -> CommandPlace {
        CommandPlace::One(self.workflow(queue, id))
    }

    fn of_number(self, sequence: SequenceNumber) -> CommandPlace {
        CommandPlace::One(self.number(sequence))
    }

    fn of_token(self, token: LockToken) -> CommandPlace {
        CommandPlace::One(self.token(token))
    }

    fn of_numbers(self, sequences: &[SequenceNumber]) -> CommandPlace {
        let places = sequences.iter().map(|sequence| self.of_number(*sequence));
        places.fold(CommandPlace::Any, CommandPlace::and)
    }

    fn of_messages(self, queue: &QueueName, messages: &[NewMessage]) -> CommandPlace {
        messages.iter().map(|message| self.message(queue, message)).fold(CommandPlace::Any, CommandPlace::and)
    }

    fn of_settlement(self, settlement: &Settlement) -> CommandPlace {
        match settlement {
            Settlement::Complete(completion) => self.of_completion(completion),
            _ => CommandPlace::Any,
        }
    }

    fn of_completion(self, completion: &CompletionCommand) -> CommandPlace {
        // What is in the outbox is for others, and stays where it is sent.
        let sends = completion.sends.iter().filter(|(queue, _)| queue.as_str() != OUTBOX_QUEUE);
        sends.map(|(queue, sent)| self.of_messages(queue, sent)).fold(CommandPlace::Any, CommandPlace::and)
    }

    /// Where the steps are done that are about what is held; those that send may be for other partitions.
    pub(crate) fn of_held_steps(self, steps: &[StepCommand]) -> CommandPlace {
        let held = steps.iter().map(|step| match step {
            StepCommand::Send(_) | StepCommand::Publish(_) => CommandPlace::Any,
            StepCommand::Settle(verb) => self.of_token(verb.token),
            step => self.of(&Command::from(step.clone())),
        });
        held.fold(CommandPlace::Any, CommandPlace::and)
    }

    fn of_steps(self, steps: &[StepCommand]) -> CommandPlace {
        let places = steps.iter().map(|step| self.of(&Command::from(step.clone())));
        places.fold(CommandPlace::Any, CommandPlace::and)
    }

    /// A purge of a queue goes from partition to partition; where it is stands in the number where it goes on.
    fn of_purge(self, from: &PurgeFrom) -> CommandPlace {
        match from {
            PurgeFrom::Message(sequence) | PurgeFrom::Reason(_, sequence) => self.of_number(*sequence),
            _ => CommandPlace::One(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::elsewhere::verbs;
    use crate::message::Message;

    const PLACES: PartitionMap = PartitionMap { partitions: 16 };

    fn queue() -> QueueName {
        QueueName::new("orders").unwrap()
    }

    fn send(workflows: &[&str]) -> Command {
        let message = |id: &&str| Message::new("").workflow(*id).check().unwrap();
        let messages = workflows.iter().map(message).collect();
        Command::Send(verbs::Send { queue: queue(), messages })
    }

    #[test]
    fn what_is_done_together_is_of_one_partition_or_refused() {
        // `order-1` is of partition 2, as are `order-6` and `order-7`.
        assert_eq!(PLACES.of(&send(&["order-1", "order-6", "order-7"])), CommandPlace::One(2));
        assert_eq!(PLACES.of(&send(&["order-1", "order-2"])), CommandPlace::Nowhere(SEVERAL));
        assert_eq!(PLACES.of(&send(&[])), CommandPlace::Any);
        let settle = |workflow: &str, partition: u16| {
            let sent = Message::new("").workflow(workflow).check().unwrap();
            let completion =
                CompletionCommand { sends: vec![(queue(), vec![sent])], ..CompletionCommand::default() };
            let token = LockToken::new(0, [9; 12]).of_partition(partition);
            Command::Settle(verbs::Settle {
                queue: queue(),
                token,
                sequence: SequenceNumber::new(1),
                delivery_count: 1,
                settlement: Settlement::Complete(completion),
            })
        };
        assert_eq!(PLACES.of(&settle("order-1", 2)), CommandPlace::One(2));
        assert_eq!(PLACES.of(&settle("order-1", 3)), CommandPlace::Nowhere(SEVERAL));
    }

    #[test]
    fn a_token_and_a_number_lead_to_the_partition_that_has_given_them() {
        for partition in 0..16 {
            let token = LockToken::new(7, [0xff; 12]).of_partition(partition);
            assert_eq!(PLACES.token(token), partition);
            assert_eq!(PLACES.token(token.nth(1_023)), partition);
            let first = crate::cluster::partition::first_number(partition);
            assert_eq!(PLACES.number(SequenceNumber::new(first)), partition);
            assert_eq!(PLACES.number(SequenceNumber::new(first + limits::NUMBER_END - 2)), partition);
        }
    }
}
