//! Messages that a command accepts, some at a time: what is done to one is done to all of them before the next thing is.

use std::sync::Arc;

use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::MessageContent;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Step;
use crate::engine::rules::workflow::RankedMessage;
use crate::id::SequenceNumber;
use crate::limits;

/// Messages on their way to their places. Storing them, lining them up and closing their workflows are loops of their own: the
/// code of each fits into a processor's cache, and that of all together does not.
#[derive(Default)]
#[must_use = "messages that are on their way have to be put to their places"]
pub(crate) struct IncomingMessages {
    messages: Vec<IncomingMessage>,
    /// Their workflows, in the order in which they came, none of them twice.
    workflows: Vec<Destination>,
}

/// A message with its number.
struct IncomingMessage {
    sequence: SequenceNumber,
    record: Arc<MessageRecord>,
    /// Its content until it is stored.
    content: Option<MessageContent>,
    /// Which of the workflows it comes to.
    to: usize,
}

/// A workflow that is open for what comes to it.
struct Destination {
    workflow: Box<OpenWorkflow>,
    /// Its [`mark`].
    mark: u64,
    /// Whether what comes joins the end of its line, and changes nothing else of it.
    is_behind: bool,
    /// Whether what comes, by position, changes nothing of what it offers.
    offers_the_same: bool,
    messages: u64,
    /// The head of its line, once that is known to be the one message that comes.
    head: Option<RankedMessage>,
}

impl IncomingMessages {
    /// The number that the next message gets.
    pub(crate) fn next_sequence(&self, step: &Step<'_>) -> Read<SequenceNumber> {
        Ok(SequenceNumber::new(step.peek_sequence()? + self.messages.len() as u64))
    }

    /// Adds the next message, which is made for its workflow.
    pub(crate) fn add(
        &mut self,
        step: &mut Step<'_>,
        queue: &Arc<QueueRecord>,
        (stream, sequence): (WorkflowRef, SequenceNumber),
        make: impl FnOnce(&mut Step<'_>, &OpenWorkflow) -> Read<(Arc<MessageRecord>, MessageContent)>,
    ) -> Read<()> {
        let to = self.destination(step, queue, stream)?;
        let destination = &mut self.workflows[to];
        let (record, content) = make(step, &destination.workflow)?;
        destination.messages += 1;
        destination.offers_the_same =
            record.rank.is_some_and(|rank| destination.workflow.offers_the_same_with(rank));
        self.messages.push(IncomingMessage { sequence, record, content: Some(content), to });
        Ok(())
    }

    /// The workflow of the next message, opened unless it is open already for what joins the end of its line. All are put to their
    /// places first if they are enough, or one of them changes that workflow.
    fn destination(
        &mut self,
        step: &mut Step<'_>,
        queue: &Arc<QueueRecord>,
        stream: WorkflowRef,
    ) -> Read<usize> {
        if self.messages.len() == limits::SIDE_BY_SIDE_MAX {
            self.place_all(step)?;
        }
        let last = self.workflows.last();
        if !last.is_some_and(|last| last.is_behind && last.workflow.key.stream == stream) {
            let mark = mark(&stream);
            if self.workflows.iter().any(|other| other.mark == mark) {
                self.place_all(step)?;
            }
            let workflow = OpenWorkflow::open(step, queue, stream)?;
            let is_behind = workflow.is_offering();
            self.workflows.push(Destination {
                workflow,
                mark,
                is_behind,
                offers_the_same: false,
                messages: 0,
                head: None,
            });
        }
        Ok(self.workflows.len() - 1)
    }

    /// Puts all to their places, and closes their workflows.
    pub(crate) fn place_all(&mut self, step: &mut Step<'_>) -> Read<()> {
        for message in &mut self.messages {
            let workflow = &mut self.workflows[message.to].workflow;
            step.write_content(workflow.message_key(message.sequence), message.content.take())?;
            workflow.restate_as(step, message.sequence, None, message.record.clone())?;
        }
        for message in self.messages.drain(..) {
            let Destination { workflow, head, .. } = &mut self.workflows[message.to];
            workflow.enter(step, message.sequence, &message.record)?;
            *head = match message.record.rank {
                Some(rank) if workflow.record.line == 1 && !workflow.is_aside(&message.record) => {
                    Some((rank, message.sequence, message.record))
                }
                _ => None,
            };
        }
        for destination in self.workflows.drain(..) {
            // The numbers are used up one workflow after the other, because the next one says where it becomes ready.
            step.next_sequences(destination.messages)?;
            match (destination.is_behind, destination.offers_the_same) {
                (true, _) => destination.workflow.close_behind(step)?,
                (false, true) => destination.workflow.close_offering_the_same(step)?,
                // No message brings a workflow nearer to a gap; one that its holder has just reached is judged after all that
                // he sends, because any of it may fill the gap.
                (false, false) => destination.workflow.close_with(step, destination.head)?,
            }
        }
        Ok(())
    }
}

/// What tells a workflow from others: the same for the same workflow, and hardly ever for another. IDs differ most at their ends.
fn mark(stream: &WorkflowRef) -> u64 {
    match stream {
        WorkflowRef::Single(sequence) => sequence.get(),
        WorkflowRef::Named(id) => {
            let bytes = id.as_str().as_bytes();
            match bytes.last_chunk() {
                Some(tail) => u64::from_le_bytes(*tail),
                None => bytes.iter().fold(0, |mark, byte| mark << 8 | u64::from(*byte)),
            }
        }
    }
}
