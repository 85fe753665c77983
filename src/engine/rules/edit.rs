//! Edit: a dead letter goes back with another body, and its original stays among the dead letters, to be looked at.

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::DeadLetter;
use crate::engine::rules::record::MessageContent;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::rules::redriven::Edit;
use crate::engine::rules::redriven::Redriven;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::refuse;
use crate::error::OperateRefusal;
use crate::error::SendRefusal;
use crate::header::EDITED_AS;
use crate::header::ORIGINAL;
use crate::header::PropertyValue;
use crate::id::QueueName;
use crate::id::SequenceNumber;

/// The reason of a dead letter that is the original of a message which was edited and put back.
pub const EDITED: &str = "edited";

impl Step<'_> {
    /// Puts a dead letter back with another body. Refused as a redrive would be, and for the size of the body.
    pub(crate) fn edit_and_redrive(
        &mut self,
        name: &QueueName,
        edit: Edit,
    ) -> Ruling<Redriven, OperateRefusal> {
        let Edit { sequence, position, body } = edit;
        let queue = self.queue_to_operate(name)?;
        let (bytes, bytes_max) = (body.len(), queue.options.body_bytes_max);
        if bytes > bytes_max {
            return refuse(OperateRefusal::Send(SendRefusal::BodyTooLarge { index: 0, bytes, bytes_max }));
        }
        let before = self.message(queue.id, sequence)?;
        let content = self.records.content(MessageKey { queue: queue.id, sequence })?;
        let redriven = self.redrive(name, sequence, position)?;
        let (before, content) = before.zip(content).expect("what was put back was there, with its content");
        let edited = match redriven {
            Redriven::InPlace => sequence,
            Redriven::AsNew(number) => number,
        };
        let original = self.keep_original(&queue, &before, &content, edited)?;
        self.rewrite(&queue, edited, body, original)?;
        Ok(redriven)
    }

    /// Files a copy of a dead letter as it was: without a place, so that no redrive of its workflow brings it back.
    fn keep_original(
        &mut self,
        queue: &Arc<QueueRecord>,
        before: &MessageRecord,
        content: &MessageContent,
        edited: SequenceNumber,
    ) -> Read<SequenceNumber> {
        let sequence = self.next_sequence()?;
        self.counters(queue.id)?.counts.accepted += 1;
        let mut workflow = OpenWorkflow::open(self, queue, WorkflowRef::Single(sequence))?;
        let Status::DeadLettered(dead_letter) = &before.status else {
            unreachable!("only dead letters are edited")
        };
        let was = match dead_letter.description.as_str() {
            "" => dead_letter.reason.clone(),
            description => format!("{}: {description}", dead_letter.reason),
        };
        let description = format!("the original of message {edited}, which was a dead letter: {was}");
        let dead_letter = DeadLetter::new(EDITED, description, self.wall);
        let mut message = MessageRecord {
            stream: workflow.key.stream.clone(),
            rank: Some(sequence.get()),
            status: Status::DeadLettered(Box::new(dead_letter)),
            ..before.clone()
        };
        message.rare.after = None;
        let mut content = content.clone();
        let number = PropertyValue::Integer(edited.get().cast_signed());
        content.headers.properties.insert(EDITED_AS.to_owned(), number);
        self.write_content(workflow.message_key(sequence), Some(content))?;
        workflow.restate(self, sequence, None, &message)?;
        workflow.list_dead_letter(self, sequence, &message, true)?;
        workflow.close_unjudged(self)?;
        Ok(sequence)
    }

    /// Gives a message that was put back its new body, and the number of its original.
    fn rewrite(
        &mut self,
        queue: &Arc<QueueRecord>,
        sequence: SequenceNumber,
        body: Bytes,
        original: SequenceNumber,
    ) -> Read<()> {
        let key = MessageKey { queue: queue.id, sequence };
        let mut content = self.records.content_listed(key)?;
        let before = self.message_listed(queue.id, sequence)?;
        content.body = body;
        let number = PropertyValue::Integer(original.get().cast_signed());
        content.headers.properties.insert(ORIGINAL.to_owned(), number);
        // Counted anew: what settlements have said since it was sent is in its headers, and not in its count.
        let bytes = (content.headers.len() + content.body.len()) as u64;
        let after = MessageRecord { bytes, ..MessageRecord::clone(&before) };
        self.write_content(key, Some(content))?;
        let mut workflow = OpenWorkflow::open(self, queue, before.stream.clone())?;
        workflow.restate(self, sequence, Some(&before), &after)?;
        workflow.close(self)
    }

    /// Whether a dead letter is the original of a message that was edited: it is not put back a second time.
    pub(crate) fn is_original(&self, key: MessageKey, message: &MessageRecord) -> Read<bool> {
        let says_so =
            matches!(&message.status, Status::DeadLettered(dead_letter) if dead_letter.reason == EDITED);
        if !says_so {
            return Ok(false);
        }
        let content = self.records.content(key)?;
        Ok(content.is_some_and(|content| content.headers.properties.contains_key(EDITED_AS)))
    }
}
