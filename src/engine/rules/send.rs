//! Acceptance: a message gets its number and its place, in the same transaction in which it is stored.

use std::sync::Arc;

use crate::engine::rules::change::Change;
use crate::engine::rules::due::Due;
use crate::engine::rules::incoming::IncomingMessages;
use crate::engine::rules::judge::Judge;
use crate::engine::rules::judge::Verdict;
use crate::engine::rules::line::LinePlace;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::DeadLetter;
use crate::engine::rules::record::Duplicate;
use crate::engine::rules::record::MessageContent;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::RareOfMessage;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::Stop;
use crate::error::SendRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::message::NewMessage;
use crate::message::Place;
use crate::queue::Order;
use crate::seldom::Seldom;

/// Messages that were judged and can no longer be refused.
pub(crate) struct AdmittedMessages {
    queue: Arc<QueueRecord>,
    messages: Vec<NewMessage>,
    /// What becomes of each.
    verdicts: Vec<Verdict>,
}

impl Step<'_> {
    /// Accepts all messages, or refuses all.
    pub(crate) fn send(
        &mut self,
        queue: &QueueName,
        messages: Vec<NewMessage>,
    ) -> Ruling<Vec<Receipt>, SendRefusal> {
        let judged = self.judge(&mut Judge::default(), queue, messages)?;
        Ok(self.accept_judged(judged)?)
    }

    /// Accepts or refuses each message for itself, in the order given.
    pub(crate) fn send_each(
        &mut self,
        name: &QueueName,
        messages: Vec<NewMessage>,
    ) -> Read<Vec<Result<Receipt, SendRefusal>>> {
        let Some(queue) = self.queue_named(name)? else {
            let refusal = SendRefusal::QueueNotFound(name.clone());
            return Ok(messages.iter().map(|_| Err(refusal.clone())).collect());
        };
        match Judge::default().judge(self, &queue, &messages) {
            // Nearly always none is refused: then they are judged as one command.
            Ok(verdicts) => {
                let judged = AdmittedMessages { queue, messages, verdicts };
                Ok(self.accept_judged(judged)?.into_iter().map(Ok).collect())
            }
            Err(Stop::Refused(_)) => self.send_one_by_one(&queue, messages),
            Err(Stop::Fault(fault)) => Err(fault),
        }
    }

    fn send_one_by_one(
        &mut self,
        queue: &Arc<QueueRecord>,
        messages: Vec<NewMessage>,
    ) -> Read<Vec<Result<Receipt, SendRefusal>>> {
        let mut answers = Vec::with_capacity(messages.len());
        for (index, message) in messages.into_iter().enumerate() {
            let messages = vec![message];
            let verdicts = match Judge::default().judge(self, queue, &messages) {
                Ok(verdicts) => verdicts,
                Err(Stop::Refused(refusal)) => {
                    answers.push(Err(refusal.behind(index)));
                    continue;
                }
                Err(Stop::Fault(fault)) => return Err(fault),
            };
            let judged = AdmittedMessages { queue: queue.clone(), messages, verdicts };
            answers.extend(self.accept_judged(judged)?.into_iter().map(Ok));
        }
        Ok(answers)
    }

    pub(crate) fn judge(
        &self,
        judge: &mut Judge,
        name: &QueueName,
        messages: Vec<NewMessage>,
    ) -> Ruling<AdmittedMessages, SendRefusal> {
        let queue = self.queue_or(name, SendRefusal::QueueNotFound)?;
        let verdicts = judge.judge(self, &queue, &messages)?;
        Ok(AdmittedMessages { queue, messages, verdicts })
    }

    pub(crate) fn accept_judged(&mut self, judged: AdmittedMessages) -> Read<Vec<Receipt>> {
        let AdmittedMessages { queue, messages, verdicts } = judged;
        let mut receipts = Vec::with_capacity(messages.len());
        let mut incoming = IncomingMessages::default();
        for (message, verdict) in messages.into_iter().zip(verdicts) {
            receipts.push(match verdict {
                Verdict::Duplicate(first) => Receipt::Duplicate(first),
                Verdict::AlreadySettled => Receipt::AlreadySettled,
                Verdict::Accept => Receipt::Accepted(self.accept_next(&queue, message, &mut incoming)?),
                Verdict::DeadLetter(reason) => {
                    incoming.place_all(self)?;
                    Receipt::DeadLettered(self.accept_as_dead_letter(&queue, message, reason)?)
                }
            });
        }
        incoming.place_all(self)?;
        Ok(receipts)
    }

    pub(crate) fn accept(&mut self, queue: &Arc<QueueRecord>, new: NewMessage) -> Read<SequenceNumber> {
        let mut incoming = IncomingMessages::default();
        let sequence = self.accept_next(queue, new, &mut incoming)?;
        incoming.place_all(self)?;
        Ok(sequence)
    }

    /// Accepts a message: it has its number, and is put to its place with others.
    fn accept_next(
        &mut self,
        queue: &Arc<QueueRecord>,
        mut new: NewMessage,
        incoming: &mut IncomingMessages,
    ) -> Read<SequenceNumber> {
        let sequence = incoming.next_sequence(self)?;
        let stream = stream_of(queue, sequence, &mut new);
        incoming.add(self, queue, (stream, sequence), |step, workflow| {
            step.counters(queue.id)?.counts.accepted += 1;
            step.remember_id(queue, sequence, &new)?;
            Ok(record_of(step, workflow, sequence, new))
        })?;
        Ok(sequence)
    }

    fn accept_as_dead_letter(
        &mut self,
        queue: &Arc<QueueRecord>,
        mut new: NewMessage,
        reason: &'static str,
    ) -> Read<SequenceNumber> {
        let sequence = self.next_sequence()?;
        self.counters(queue.id)?.counts.accepted += 1;
        self.remember_id(queue, sequence, &new)?;
        let mut workflow = OpenWorkflow::open(self, queue, stream_of(queue, sequence, &mut new))?;
        let (mut message, content) = record_of(self, &workflow, sequence, new);
        let description = "its place was settled before it came".to_owned();
        let dead_letter = DeadLetter::new(reason, description, self.wall);
        Arc::make_mut(&mut message).status = Status::DeadLettered(Box::new(dead_letter));
        self.write_content(workflow.message_key(sequence), Some(content))?;
        workflow.restate_as(self, sequence, None, message.clone())?;
        workflow.list_dead_letter(self, sequence, &message, true)?;
        workflow.close_unjudged(self)?;
        Ok(sequence)
    }

    fn remember_id(&mut self, queue: &QueueRecord, sequence: SequenceNumber, new: &NewMessage) -> Read<()> {
        let (Some(id), Some(window)) = (&new.message_id, queue.options.duplicate_window) else {
            return Ok(());
        };
        if let Some(old) = self.records.duplicate(queue.id, id)? {
            self.drop_reminder(old.until, queue.id, Remind::Duplicate(id.clone()))?;
        }
        let until = self.now + window;
        self.write(Change::Duplicate(queue.id, id.clone(), Some(Duplicate { sequence, until })))?;
        self.set_reminder(until, queue.id, Remind::Duplicate(id.clone()))
    }

    /// The ID of a message that was cancelled or purged is not remembered any more: it may be sent again.
    pub(crate) fn forget_id(
        &mut self,
        queue: QueueId,
        sequence: SequenceNumber,
        message: &MessageRecord,
    ) -> Read<()> {
        let Some(id) = &message.message_id else { return Ok(()) };
        let known = self.records.duplicate(queue, id)?.filter(|known| known.sequence == sequence);
        let Some(known) = known else { return Ok(()) };
        self.drop_reminder(known.until, queue, Remind::Duplicate(id.clone()))?;
        self.write(Change::Duplicate(queue, id.clone(), None))
    }
}

impl OpenWorkflow {
    /// Puts a message that is not handed out to its place; early ones that waited for it join the run.
    pub(crate) fn enter(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        message: &MessageRecord,
    ) -> Read<()> {
        let stays_out = message.rank.is_some_and(|rank| self.is_beyond_gap(rank));
        match message.rank {
            Some(rank) if self.is_aside(message) => self.join(step, sequence, LinePlace::Aside(rank))?,
            Some(rank) => {
                self.join(step, sequence, LinePlace::Line(rank))?;
                self.reach(step, rank, message)?;
            }
            None => self.wait_for_chain(step, sequence, message)?,
        }
        if self.has_places() && !stays_out { self.extend_unless_planned(step) } else { Ok(()) }
    }
}

/// Which workflow a message comes to. It gives up its text of the name: the workflow may have one already.
fn stream_of(queue: &QueueRecord, sequence: SequenceNumber, new: &mut NewMessage) -> WorkflowRef {
    match queue.options.order {
        Order::None => None,
        _ => new.workflow_id.take(),
    }
    .map_or(WorkflowRef::Single(sequence), WorkflowRef::Named)
}

fn record_of(
    step: &Step<'_>,
    workflow: &OpenWorkflow,
    sequence: SequenceNumber,
    new: NewMessage,
) -> (Arc<MessageRecord>, MessageContent) {
    let (rank, after) = match new.place {
        _ if !workflow.has_places() => (Some(sequence.get()), None),
        Place::Position(position) => (Some(position.get()), None),
        Place::After(ref predecessor) => (None, predecessor.clone()),
        Place::Arrival => unreachable!("a message without a place is refused by an ordered workflow"),
    };
    let due = Due::of_kept_back(new.kept_back, step.clocks());
    let longest = workflow.queue.options.time_to_live;
    let lives = [new.time_to_live, longest].into_iter().flatten().min();
    let bytes = new.len() as u64;
    let expires_at = lives.map(|lasts| match due {
        Some(due) => due.later_by(lasts),
        None => Due::engine(step.now + lasts),
    });
    let time_to_live = new.time_to_live;
    let rare = match (&after, expires_at, time_to_live) {
        (None, None, None) => Seldom::default(),
        _ => RareOfMessage { after, expires_at, time_to_live, ..RareOfMessage::default() }.into(),
    };
    let message = Arc::new(MessageRecord {
        stream: workflow.key.stream.clone(),
        rank,
        message_id: new.message_id,
        status: due.map_or(Status::Ready, |due| Status::Scheduled { due }),
        accepted_at: step.wall,
        bytes,
        delivery_count: 0,
        handed_out_at: if workflow.is_chained() { step.now } else { step.wall },
        rare,
    });
    // The text that the workflow has already, if it has one.
    let workflow_id = workflow.key.stream.workflow_id().cloned().or(new.workflow_id);
    let content = MessageContent { workflow_id, headers: new.headers, body: new.body };
    (message, content)
}
