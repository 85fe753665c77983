//! Every message: it has its content, its place, its workflow and its reminders.

use std::iter::Peekable;

use crate::engine::rules::record::Counts;
use crate::engine::rules::record::MessageContent;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::store::merged_tables::MergedRows;
use crate::engine::store::schema::Aside;
use crate::engine::store::schema::Contents;
use crate::engine::store::schema::DeadByReason;
use crate::engine::store::schema::DeadByWorkflow;
use crate::engine::store::schema::Holdings;
use crate::engine::store::schema::Line;
use crate::engine::store::schema::Messages;
use crate::engine::store::schema::Waiting;
use crate::engine::verify::compare::RowComparison;
use crate::engine::verify::compare::is_aside;
use crate::engine::verify::compare::reminders_of;
use crate::error::Fault;

type ContentRows<'m> = Peekable<MergedRows<'m, Contents>>;

impl<'a> RowComparison<'a, '_> {
    /// Compares messages with all that speaks of them.
    pub(crate) fn compare_messages(&mut self) -> Result<(), Fault> {
        let mut contents = self.rows.rows::<Contents>()?.peekable();
        for row in self.rows.rows::<Messages>()? {
            let (queue, sequence, message) = row?;
            let key = MessageKey { queue, sequence };
            self.findings.go_on();
            self.findings.report.messages += 1;
            match self.content_of(&mut contents, Some(key))? {
                Some(content) => self.compare_content(key, &message, &content),
                None => self.complain(key, "its content is not there"),
            }
            self.count(key, &message);
            self.compare_message(key, &message)?;
        }
        self.content_of(&mut contents, None)?;
        Ok(())
    }

    /// The content of a message; contents before it belong to none. Without a message, to the end.
    fn content_of(
        &mut self,
        contents: &mut ContentRows<'a>,
        key: Option<MessageKey>,
    ) -> Result<Option<MessageContent>, Fault> {
        let of = |queue, sequence| MessageKey { queue, sequence };
        let upto = |row: &Result<_, Fault>| match row {
            Ok((queue, sequence, _)) => key.is_none_or(|key| of(*queue, *sequence) <= key),
            Err(_) => true,
        };
        while let Some(row) = contents.next_if(upto) {
            let (queue, sequence, content) = row?;
            if Some(of(queue, sequence)) == key {
                return Ok(Some(content));
            }
            self.findings.row::<Contents>(&queue, &sequence, "its message is not there");
        }
        Ok(None)
    }

    fn complain(&mut self, key: MessageKey, problem: &str) {
        self.findings.row::<Messages>(&key.queue, &key.sequence, problem);
    }

    fn compare_content(&mut self, key: MessageKey, message: &MessageRecord, content: &MessageContent) {
        let fits = match &message.stream {
            WorkflowRef::Named(id) => content.workflow_id.as_ref() == Some(id),
            WorkflowRef::Single(sequence) => *sequence == key.sequence,
        };
        if !fits {
            self.complain(key, "its content is of another workflow");
        }
    }

    fn count(&mut self, key: MessageKey, message: &MessageRecord) {
        let counts: &mut Counts = self.found.entry(key.queue).or_default();
        *match &message.status {
            Status::Ready => &mut counts.ready,
            Status::Scheduled { .. } => &mut counts.scheduled,
            Status::Failed { due: Some(_) } => &mut counts.retry,
            Status::Failed { due: None } => &mut counts.exhausted,
            Status::ByConsumer { .. } => &mut counts.by_consumer,
            Status::Locked { .. } => &mut counts.locked,
            Status::DeadLettered(_) => &mut counts.dead_lettered,
        } += 1;
    }

    fn compare_message(&mut self, key: MessageKey, message: &MessageRecord) -> Result<(), Fault> {
        let workflow = WorkflowKey { queue: key.queue, stream: message.stream.clone() };
        if self.queue(key.queue).is_none() {
            self.complain(key, "its queue is not there");
            return Ok(());
        }
        if key.sequence.get() >= self.ledger.numbers.next_sequence {
            self.complain(key, "its number was never given");
        }
        if self.workflow(&workflow)?.is_none() {
            self.complain(key, "its workflow is not there");
        }
        if !self.is_placed(key, &workflow, message)? {
            self.complain(key, "it is not listed at its place");
        }
        if matches!(message.status, Status::Locked { .. }) {
            let holding = self.rows.get::<Holdings>(&key.queue, &message.stream)?;
            if !holding.is_some_and(|holding| holding.out.contains(key.sequence)) {
                self.complain(key, "it is handed out, and no holding names it");
            }
        }
        for reminder in reminders_of(key, message) {
            // While a message is handed out its time may run out; it is looked at when it comes back.
            let protected =
                matches!(message.status, Status::Locked { .. }) && reminder.due.is_past(self.ledger.now);
            if !protected && !self.is_reminded(reminder)? {
                self.complain(key, "its reminder is not there");
            }
        }
        Ok(())
    }

    /// Whether the list that must name the message does.
    fn is_placed(
        &self,
        key: MessageKey,
        workflow: &WorkflowKey,
        message: &MessageRecord,
    ) -> Result<bool, Fault> {
        let is_this = |sequence: Option<_>| sequence == Some(key.sequence);
        if let Status::DeadLettered(dead_letter) = &message.status {
            let place = (message.rank.unwrap_or(0), key.sequence);
            let reason = (dead_letter.reason.clone(), key.sequence);
            return Ok(self.rows.get::<DeadByWorkflow>(workflow, &place)?.is_some()
                && self.rows.get::<DeadByReason>(&key.queue, &reason)?.is_some());
        }
        Ok(match (message.rank, &message.message_id) {
            (Some(rank), _) if is_aside(message, self.has_places(workflow)) => {
                is_this(self.rows.get::<Aside>(workflow, &rank)?)
            }
            (Some(rank), _) => is_this(self.rows.get::<Line>(workflow, &rank)?),
            (None, Some(id)) => is_this(self.rows.get::<Waiting>(workflow, id)?),
            (None, None) => false,
        })
    }
}
