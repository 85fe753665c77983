//! Writes down what was asked and what was answered.

use crate::clock::Timestamp;
use crate::engine::rules::command::Operation;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::due::Due;
use crate::engine::rules::effect::Event;
use crate::engine::rules::effect::EventKind;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::redriven::Redriven;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::simulation::ledger::Ledger;
use crate::engine::tests::simulation::ledger::entry::End;
use crate::engine::tests::simulation::ledger::entry::Entry;
use crate::engine::tests::simulation::ledger::entry::Hold;
use crate::engine::tests::simulation::ledger::fact::Fact;
use crate::engine::tests::simulation::ledger::holds::Received;
use crate::engine::tests::simulation::ledger::ledger::Known;
use crate::engine::tests::simulation::ledger::ledger::Sums;
use crate::error::SendRefusal;
use crate::id::IdempotencyKey;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;
use crate::message::NewMessage;
use crate::message::Place;
use crate::queue::ExpiryPolicy;
use crate::queue::QueueOptions;

impl Ledger {
    pub(crate) fn record(&mut self, command: &Command, reply: &Reply) {
        match (command, reply) {
            (Command::CreateQueue(verbs::CreateQueue { name, options }), Reply::Queue(Ok(true))) => {
                self.note_queue(name, options)
            }
            (Command::ChangeQueue(verbs::ChangeQueue { name, options }), Reply::Queue(Ok(true))) => {
                self.note_options(name, options)
            }
            (Command::DeleteQueue(verbs::DeleteQueue { name }), Reply::Queue(Ok(true))) => {
                self.forget_queue(name)
            }
            (Command::ChangeTopic(verbs::ChangeTopic { name, change }), Reply::Topic(Ok(true))) => {
                self.note_topic(name, change)
            }
            (Command::Publish(verbs::Publish { fanout, .. }), Reply::Send(Ok(receipts))) => {
                self.note_published(fanout, receipts)
            }
            (
                Command::PublishOnce(verbs::PublishOnce { topic, key, fanout }),
                Reply::PublishOnce(Ok(copies)),
            ) => {
                self.note_published_once(topic, key, fanout, copies);
            }
            (Command::Send(verbs::Send { queue, messages }), Reply::Send(Ok(receipts))) => {
                self.note_receipts(queue, messages, receipts);
            }
            (Command::SendEach(verbs::SendEach { queue, messages }), Reply::SendEach(answers)) => {
                for (message, receipt) in messages.iter().zip(answers).filter_map(accepted) {
                    self.note_sent(queue, message, receipt);
                }
            }
            (Command::SendOnce(verbs::SendOnce { queue, key, messages }), Reply::Send(answer)) => {
                self.note_sent_once(queue, key, messages, answer);
            }
            (Command::Cancel(verbs::Cancel { queue, sequence, .. }), Reply::Send(answer)) => {
                self.note_cancel(queue, *sequence, answer.is_ok());
            }
            (Command::Reschedule(verbs::Reschedule { sequence, at, .. }), Reply::Send(Ok(_))) => {
                self.note_rescheduled(*sequence, *at);
                self.facts.push(Fact::Rescheduled(*sequence));
            }
            (
                Command::AcceptWorkflow(verbs::AcceptWorkflow { queue, .. }),
                Reply::AcceptWorkflow(Ok(Some(taken))),
            ) => {
                let (queue, stream, until) = (queue.clone(), taken.stream.clone(), taken.locked_until);
                let (is_whole, is_run, is_unsure) = (true, false, false);
                let hold = Hold { queue, stream, until, is_whole, is_run, out: Vec::new(), is_unsure };
                self.holds.insert(taken.token, hold);
            }
            (
                Command::Redrive(verbs::Redrive { queue, sequence, position }),
                Reply::Redrive(Ok(redriven)),
            ) => {
                let place = position.map_or(Place::Arrival, Place::Position);
                self.note_redriven(queue, *sequence, place, *redriven);
            }
            (Command::Purge(verbs::Purge { queue, .. }), Reply::Purge(Ok(purged))) => {
                self.has_purged = true;
                let of_queue = self.ids.keys().filter(|(of, _)| of == queue).cloned();
                self.unsure_ids.extend(of_queue);
                if let Some(sums) = self.sums(queue) {
                    sums.purged += purged.count;
                }
            }
            (Command::Operate(verbs::Operate { queue, workflow, operation }), Reply::Operate(Ok(()))) => {
                self.note_operation(queue, workflow, operation);
            }
            (_, Reply::Receive(Ok(handed))) => {
                let how = match command {
                    Command::ReceiveDeferred(_) | Command::ReceiveDeferredFromWorkflow(_) => {
                        Received::Fetched
                    }
                    Command::ReceiveRun(_) => Received::InRun,
                    _ => Received::InTurn,
                };
                let queue = queue_received(command);
                handed.iter().for_each(|handed| self.note_delivered(queue, handed, how));
            }
            (Command::ReceiveHidden(_) | Command::HideAgain(_) | Command::EndHidden(_), _) => {
                self.record_hidden(command, reply);
            }
            // Refused, it is as if nothing of it had been asked.
            (Command::Transact(verbs::Transact { steps }), Reply::Transact(Ok(replies))) => {
                steps
                    .iter()
                    .cloned()
                    .map(Command::from)
                    .zip(replies)
                    .for_each(|(step, reply)| self.record(&step, reply));
            }
            (_, Reply::Settle(_) | Reply::CompleteAll(_)) => self.record_settled(command, reply),
            _ => {}
        }
    }

    /// Something was asked on record.
    pub(crate) fn record_on_record(&mut self, command: &Command, reply: &Reply) {
        let Command::OnRecord(on_record) = command else { return };
        let is_refused = match reply {
            Reply::Queue(answer) => answer.is_err(),
            Reply::Topic(answer) => answer.is_err(),
            Reply::Operate(answer) => answer.is_err(),
            Reply::Redrive(answer) => answer.is_err(),
            Reply::Purge(answer) => answer.is_err(),
            other => unreachable!("no operator is answered so: {other:?}"),
        };
        let queue = queue_operated(&on_record.command).clone();
        self.on_record.push((on_record.actor.name().to_owned(), queue, is_refused));
    }

    /// Something has happened that nobody asked for.
    pub(crate) fn record_event(&mut self, event: &Event) {
        match (&event.kind, event.sequence_number) {
            (EventKind::QueueDeleted, _) => self.forget_queue(&event.queue),
            (EventKind::Redriven { in_place: true }, Some(sequence)) => self.note_put_back(sequence),
            _ => {}
        }
    }

    pub(crate) fn note_queue(&mut self, name: &QueueName, options: &QueueOptions) {
        let has_dropped = options.expired == ExpiryPolicy::Drop;
        let count_max_ever = options.delivery_count_max;
        let known = Known {
            options: options.clone(),
            has_dropped,
            has_always_history: options.history.is_some(),
            has_waited: options.hold_on_defer,
            count_max_ever,
            has_few_dead: keeps_few_dead(options),
            sums: Sums::default(),
        };
        self.queues.insert(name.clone(), known);
    }

    fn note_options(&mut self, name: &QueueName, options: &QueueOptions) {
        let known = self.queues.get_mut(name).expect("only what exists is changed");
        known.has_dropped |= options.expired == ExpiryPolicy::Drop;
        known.has_always_history &= options.history.is_some();
        known.count_max_ever = known.count_max_ever.max(options.delivery_count_max);
        known.has_waited |= options.hold_on_defer;
        known.has_few_dead |= keeps_few_dead(options);
        known.options = options.clone();
    }

    pub(crate) fn note_receipts(&mut self, queue: &QueueName, messages: &[NewMessage], receipts: &[Receipt]) {
        for (message, receipt) in messages.iter().zip(receipts) {
            self.note_sent(queue, message, *receipt);
        }
    }

    fn note_sent_once(
        &mut self,
        queue: &QueueName,
        key: &IdempotencyKey,
        messages: &[NewMessage],
        answer: &Result<Vec<Receipt>, SendRefusal>,
    ) {
        let of = (queue.clone(), key.as_str().to_owned());
        let known = self.answers.get(&of).filter(|(_, _, until)| self.now < *until);
        let remembered = known.map(|(digest, receipts, _)| (*digest, receipts.clone()));
        if let (None, Ok(receipts)) = (&remembered, answer) {
            let until = self.now + limits::IDEMPOTENCY_WINDOW;
            self.answers.insert(of, (key.digest(), receipts.clone(), until));
            self.note_receipts(queue, messages, receipts);
        }
        let (digest, answer) = (key.digest(), answer.clone());
        self.facts.push(Fact::SentOnce { digest, remembered, answer });
    }

    fn note_cancel(&mut self, queue: &QueueName, sequence: SequenceNumber, is_done: bool) {
        let entry = self.entries.get(&sequence).filter(|entry| entry.queue == *queue && entry.end.is_none());
        let clocks = ClockInstants { engine: self.now, wall: self.wall };
        let is_scheduled = entry.and_then(|entry| entry.scheduled_at).is_some_and(|due| !due.is_past(clocks));
        let was_delivered = entry.is_some_and(|entry| entry.count.1 > 0);
        let (queue_of, is_known) = (queue.clone(), entry.is_some());
        self.facts.push(Fact::Cancelled {
            queue: queue_of,
            sequence,
            is_done,
            is_known,
            is_scheduled,
            was_delivered,
        });
        if is_done {
            self.end(sequence, End::Cancelled);
            if let Some(sums) = self.sums(queue) {
                sums.cancelled += 1;
            }
        }
    }

    fn note_rescheduled(&mut self, sequence: SequenceNumber, at: Timestamp) {
        let (now, wall) = (self.now, self.wall);
        let Some(entry) = self.entries.get_mut(&sequence) else { return };
        entry.expires_at = entry.expires_at.map(|(expires_at, by_wall)| {
            let lives = entry.scheduled_at.and_then(|due| match due.is_of_wall() {
                true => by_wall.map(|over| over.since(due.at())),
                false => Some(expires_at.since(due.at())),
            });
            lives.map_or((expires_at, by_wall), |lives| (now + lives, (at > wall).then(|| at + lives)))
        });
        entry.scheduled_at = Some(Due::wall(at)).filter(|_| at > wall);
        entry.not_before = entry.scheduled_at;
    }

    fn note_redriven(
        &mut self,
        queue: &QueueName,
        sequence: SequenceNumber,
        place: Place,
        redriven: Redriven,
    ) {
        let Some(entry) = self.entries.get_mut(&sequence) else { return };
        let Redriven::AsNew(new) = redriven else {
            return self.note_put_back(sequence);
        };
        let (workflow_id, message_id) = (entry.stream.workflow_id().cloned(), entry.message_id.clone());
        let time_to_live = entry.lives;
        self.end(sequence, End::SentAnew);
        let message = NewMessage {
            workflow_id,
            place,
            message_id,
            time_to_live,
            kept_back: None,
            headers: Default::default(),
            body: bytes::Bytes::new(),
        };
        if let Some(known) = self.queues.get(queue) {
            let options = known.options.clone();
            self.enter(queue.clone(), &message, new, false, &options);
        }
    }

    fn note_operation(&mut self, queue: &QueueName, workflow: &WorkflowId, operation: &Operation) {
        let stream = WorkflowRef::Named(workflow.clone());
        match operation {
            Operation::ReleaseLock => {
                self.lose(|hold| hold.queue == *queue && hold.stream == stream);
            }
            Operation::Resume { .. } | Operation::ResumeFor { .. } | Operation::RetryNow => {
                let of_workflow = |entry: &&mut Entry| entry.queue == *queue && entry.stream == stream;
                for entry in self.entries.values_mut().filter(of_workflow) {
                    entry.is_excused = true;
                    // What its consumer has set aside, and what is scheduled, waits on.
                    if entry.scheduled_at.is_none() && !entry.is_asked {
                        entry.not_before = None;
                    }
                }
            }
            _ => {}
        }
    }
}

/// Whether so few dead letters are kept that exhausted messages may have to stay where they are.
fn keeps_few_dead(options: &QueueOptions) -> bool {
    options.dead_letters_max < 100
}

fn queue_received(command: &Command) -> &QueueName {
    match command {
        Command::Receive(verbs::Receive { queue, .. })
        | Command::ReceiveRun(verbs::ReceiveRun { queue, .. })
        | Command::ReceiveDeferred(verbs::ReceiveDeferred { queue, .. })
        | Command::ReceiveFromWorkflow(verbs::ReceiveFromWorkflow { queue, .. })
        | Command::ReceiveDeferredFromWorkflow(verbs::ReceiveDeferredFromWorkflow { queue, .. }) => queue,
        other => unreachable!("nobody receives by {other:?}"),
    }
}

fn queue_operated(command: &Command) -> &QueueName {
    match command {
        Command::CreateQueue(verbs::CreateQueue { name: queue, .. })
        | Command::ChangeQueue(verbs::ChangeQueue { name: queue, .. })
        | Command::DeleteQueue(verbs::DeleteQueue { name: queue })
        | Command::PauseQueue(verbs::PauseQueue { name: queue, .. })
        | Command::ChangeTopic(verbs::ChangeTopic { name: queue, .. })
        | Command::SetState(verbs::SetState { queue, .. })
        | Command::Operate(verbs::Operate { queue, .. })
        | Command::Redrive(verbs::Redrive { queue, .. })
        | Command::Purge(verbs::Purge { queue, .. }) => queue,
        other => unreachable!("no operator asks for {other:?}"),
    }
}

/// What became of a message that was not refused.
fn accepted<'a>(
    (message, answer): (&'a NewMessage, &Result<Receipt, SendRefusal>),
) -> Option<(&'a NewMessage, Receipt)> {
    answer.as_ref().ok().map(|receipt| (message, *receipt))
}
