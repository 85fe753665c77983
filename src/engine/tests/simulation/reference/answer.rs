//! Every answer, compared with what the contract says: queues, sends and what operators ask.

use crate::clock::Timestamp;
use crate::engine::rules::command::PurgeScope;
use crate::engine::rules::due::Due;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::redriven::Redriven;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::transact::StepCommand;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::simulation::reference::Reference;
use crate::engine::tests::simulation::reference::naive::Cause;
use crate::engine::tests::simulation::reference::naive::Message;
use crate::engine::tests::simulation::reference::naive::Naive;
use crate::engine::tests::simulation::reference::naive::State;
use crate::engine::tests::simulation::reference::send::Sender;
use crate::engine::tests::simulation::reference::send::Unsent;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::expect;
use crate::error::SendRefusal;
use crate::id::IdempotencyKey;
use crate::id::Position;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::limits;
use crate::message::NewMessage;
use crate::message::Place;
use crate::queue::HoldKind;
use crate::queue::Order;
use crate::queue::QueueOptions;

/// That an answer is the expected one.
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(answered: &T, expected: &T) -> Finding {
    expect(answered == expected, || format!("R {answered:?} was answered, {expected:?} expected"))
}

impl Reference {
    /// Hears an answer.
    pub(crate) fn record(&mut self, command: &Command, reply: &Reply) -> Finding {
        if let Reply::Receive(Ok(handed)) = reply {
            for one in handed {
                self.settled.remove(&(one.token, one.sequence.get(), one.record.delivery_count));
            }
        }
        match (command, reply) {
            (Command::CreateQueue(verbs::CreateQueue { name, options }), Reply::Queue(answer)) => {
                same(&answer.as_ref().ok().copied(), &self.create(name, options))
            }
            (Command::ChangeQueue(verbs::ChangeQueue { name, options }), Reply::Queue(answer)) => {
                same(&answer.as_ref().ok().copied(), &self.change(name, options))
            }
            (Command::PauseQueue(verbs::PauseQueue { name, .. }), Reply::Queue(answer)) => {
                let is_there = self.queues.contains_key(name) || self.chained.contains_key(name);
                same(&answer.is_ok(), &is_there)
            }
            (Command::DeleteQueue(verbs::DeleteQueue { name }), Reply::Queue(answer)) => {
                let is_there = self.queues.contains_key(name) || self.chained.contains_key(name);
                self.delete(name);
                same(&answer.is_ok(), &is_there)
            }
            (Command::ChangeTopic(_) | Command::Publish(_) | Command::PublishOnce(_), reply) => {
                self.record_of_topic(command, reply)
            }
            (Command::Send(verbs::Send { queue, messages }), Reply::Send(answer)) => {
                let answer = answer.as_ref().map_err(Unsent::of).cloned();
                self.record_sent(queue, messages, answer)
            }
            (Command::SendEach(verbs::SendEach { queue, messages }), Reply::SendEach(answers)) => {
                self.record_sent_each(queue, messages, answers)
            }
            (Command::SendOnce(verbs::SendOnce { queue, key, messages }), Reply::Send(answer)) => {
                let answer = answer.as_ref().map_err(Unsent::of).cloned();
                self.record_sent_once(queue, key, messages, answer)
            }
            (Command::Cancel(verbs::Cancel { queue, sequence, void }), Reply::Send(answer)) => {
                let Some(naive) = self.queues.get_mut(queue) else { return Ok(()) };
                same(&answer.is_ok(), &naive.cancel(sequence.get(), *void))
            }
            (Command::Reschedule(verbs::Reschedule { queue, sequence, at }), Reply::Send(answer)) => {
                let Some(naive) = self.queues.get_mut(queue) else { return Ok(()) };
                same(&answer.is_ok(), &naive.reschedule(sequence.get(), *at))
            }
            (Command::SetState(verbs::SetState { queue, workflow, state }), Reply::Operate(answer)) => {
                let Some(naive) = self.queues.get_mut(queue) else { return Ok(()) };
                let key = WorkflowRef::Named(workflow.clone());
                let is_done = naive.options.order != Order::None && naive.lock(&key).is_none();
                if is_done {
                    naive.set_state(&key, state.clone());
                    naive.close(&key);
                }
                same(&answer.is_ok(), &is_done)
            }
            (Command::Operate(verbs::Operate { queue, workflow, operation }), Reply::Operate(answer)) => {
                let Some(naive) = self.queues.get_mut(queue) else { return Ok(()) };
                let key = WorkflowRef::Named(workflow.clone());
                let is_done = naive.options.order != Order::None && naive.operate(&key, operation);
                if is_done {
                    naive.close(&key);
                }
                same(&answer.is_ok(), &is_done)
            }
            (Command::Redrive(verbs::Redrive { queue, sequence, position }), Reply::Redrive(answer)) => {
                self.record_redriven(queue, *sequence, *position, answer.as_ref().ok().copied())
            }
            (Command::Purge(verbs::Purge { queue, scope, .. }), Reply::Purge(answer)) => {
                let Some(naive) = self.queues.get_mut(queue) else { return Ok(()) };
                same(&answer.as_ref().ok().map(|purged| purged.count), &Some(naive.purge(scope)))
            }
            (Command::ReceiveHidden(_) | Command::HideAgain(_) | Command::EndHidden(_), _) => {
                self.record_hidden(command, reply)
            }
            (_, Reply::Receive(_) | Reply::AcceptWorkflow(_)) => self.record_received(command, reply),
            // Refused, it is as if nothing of it had been asked.
            (Command::Transact(verbs::Transact { steps }), Reply::Transact(Ok(replies))) => {
                self.record_transacted(steps, replies)
            }
            (_, Reply::Settle(_) | Reply::CompleteAll(_)) => self.record_settled(command, reply),
            _ => Ok(()),
        }
    }

    /// The steps of a transaction that was done. What was settled before it is not answered again in it.
    fn record_transacted(&mut self, steps: &[StepCommand], replies: &[Reply]) -> Finding {
        self.check_hops(steps)?;
        let before = std::mem::take(&mut self.settled);
        for (step, reply) in steps.iter().cloned().map(Command::from).zip(replies) {
            self.record(&step, reply)?;
        }
        let noted = std::mem::replace(&mut self.settled, before);
        self.settled.extend(noted);
        Ok(())
    }

    fn options(&self, name: &QueueName) -> Option<&QueueOptions> {
        self.queues.get(name).map(|naive| &naive.options).or_else(|| self.chained.get(name))
    }

    fn create(&mut self, name: &QueueName, options: &QueueOptions) -> Option<bool> {
        if self.topics.contains_key(name) {
            return None;
        }
        if let Some(known) = self.options(name) {
            return (known == options).then_some(false);
        }
        if name.subscription().is_some() {
            return None;
        }
        self.create_any(name, options);
        Some(true)
    }

    pub(crate) fn create_any(&mut self, name: &QueueName, options: &QueueOptions) {
        match self.is_blind {
            true => drop(self.chained.insert(name.clone(), options.clone())),
            false => drop(self.queues.insert(name.clone(), Naive::new(options.clone(), self.clocks))),
        }
    }

    fn change(&mut self, name: &QueueName, options: &QueueOptions) -> Option<bool> {
        if self.options(name)? == options {
            return Some(false);
        }
        match self.queues.get_mut(name) {
            Some(naive) => naive.options = options.clone(),
            None => drop(self.chained.insert(name.clone(), options.clone())),
        }
        Some(true)
    }

    fn record_sent(
        &mut self,
        queue: &QueueName,
        messages: &[NewMessage],
        answer: Result<Vec<Receipt>, Unsent>,
    ) -> Finding {
        if self.chained.contains_key(queue) {
            self.note_numbers(answer.as_deref().unwrap_or_default());
            return Ok(());
        }
        let expected = match self.queues.get(queue) {
            Some(naive) => naive.judge(messages, self.last + 1, Sender::Anybody),
            None => Err(Unsent::NoQueue),
        };
        same(&answer, &expected)?;
        self.accept(queue, messages, &expected.unwrap_or_default());
        Ok(())
    }

    /// Where none is refused they are judged as messages of one command, else each by itself.
    fn record_sent_each(
        &mut self,
        queue: &QueueName,
        messages: &[NewMessage],
        answers: &[Result<Receipt, SendRefusal>],
    ) -> Finding {
        let naive = self.queues.get(queue);
        let together = naive.map(|naive| naive.judge(messages, self.last + 1, Sender::Anybody));
        if matches!(together, Some(Ok(_))) {
            let answer = answers.iter().cloned().collect::<Result<Vec<_>, _>>();
            return self.record_sent(queue, messages, answer.map_err(|refusal| Unsent::of(&refusal)));
        }
        for (message, answer) in messages.iter().zip(answers) {
            let answer = answer.as_ref().map(|receipt| vec![*receipt]).map_err(Unsent::of);
            self.record_sent(queue, std::slice::from_ref(message), answer)?;
        }
        Ok(())
    }

    fn record_sent_once(
        &mut self,
        queue: &QueueName,
        key: &IdempotencyKey,
        messages: &[NewMessage],
        answer: Result<Vec<Receipt>, Unsent>,
    ) -> Finding {
        let of = (queue.clone(), key.as_str().to_owned());
        if let Some((digest, receipts, _)) = self.answers.get(&of).filter(|(_, _, until)| self.now < *until) {
            let is_same = *digest == key.digest();
            return same(&answer, &if is_same { Ok(receipts.clone()) } else { Err(Unsent::KeyReused) });
        }
        if let Ok(receipts) = &answer {
            let until = self.now + limits::IDEMPOTENCY_WINDOW;
            self.answers.insert(of, (key.digest(), receipts.clone(), until));
        }
        self.record_sent(queue, messages, answer)
    }

    /// Stores messages that were answered so.
    pub(crate) fn accept(&mut self, queue: &QueueName, messages: &[NewMessage], receipts: &[Receipt]) {
        self.note_numbers(receipts);
        let Some(naive) = self.queues.get_mut(queue) else { return };
        for (message, receipt) in messages.iter().zip(receipts) {
            if let Receipt::Accepted(number) | Receipt::DeadLettered(number) = receipt {
                self.properties.insert(number.get(), message.headers.properties.clone());
            }
            naive.accept(message, *receipt);
        }
    }

    fn note_numbers(&mut self, receipts: &[Receipt]) {
        for receipt in receipts {
            if let Receipt::Accepted(number) | Receipt::DeadLettered(number) = receipt {
                self.last = self.last.max(number.get());
            }
        }
    }

    fn record_redriven(
        &mut self,
        queue: &QueueName,
        sequence: SequenceNumber,
        position: Option<Position>,
        answer: Option<Redriven>,
    ) -> Finding {
        let next = self.last + 1;
        if let Some(Redriven::AsNew(new)) = answer {
            self.last = self.last.max(new.get());
        }
        let Some(naive) = self.queues.get_mut(queue) else { return Ok(()) };
        same(&answer, &naive.redrive(sequence.get(), position, next))
    }
}

impl Naive {
    /// The place is free again, or it is settled.
    fn cancel(&mut self, seq: u64, void: bool) -> bool {
        let Some(message) = self.message(seq).filter(|m| matches!(m.state, State::Scheduled(_))) else {
            return false;
        };
        let key = message.key.clone();
        let message = self.remove(seq);
        self.forget_id(&message);
        if void {
            self.give_up(&message);
        } else {
            self.cut_link(&message);
        }
        self.close(&key);
        true
    }

    /// It comes at another instant, and lives from then on as long as it would have.
    fn reschedule(&mut self, seq: u64, at: Timestamp) -> bool {
        let State::Scheduled(due) = self.message(seq).map_or(State::Ready, |message| message.state.clone())
        else {
            return false;
        };
        let (key, is_due) = (self.key_of(seq), at <= self.wall);
        let (index, begins) = (self.at(seq).expect("it is stored"), at.max(self.wall));
        let message = &mut self.messages[index];
        message.state = State::Scheduled(Due::wall(at));
        // Both are of one clock: a time to live begins when it is due.
        message.expires = message.expires.map(|expires| Due::wall(begins + expires.at().since(due.at())));
        if is_due {
            self.come_due(seq);
        }
        self.close(&key);
        true
    }

    fn redrive(&mut self, seq: u64, position: Option<Position>, next: u64) -> Option<Redriven> {
        let message = self.message(seq).filter(|message| message.state == State::Dead)?.clone();
        if self.is_held_for(&message.key, HoldKind::Quarantine) {
            return None;
        }
        if position.is_none() && self.is_place_ahead(seq) {
            if !self.has_room(1, true) {
                return None;
            }
            self.put_back(seq);
            self.close(&message.key);
            return Some(Redriven::InPlace);
        }
        if position.is_none() && self.placed(&message.key) {
            return None;
        }
        let new = NewMessage {
            workflow_id: message.workflow_id.clone(),
            place: position.map_or(Place::Arrival, Place::Position),
            message_id: None,
            time_to_live: message.lives,
            kept_back: None,
            headers: Default::default(),
            body: message.body.clone(),
        };
        let judged = self.judge(std::slice::from_ref(&new), next, Sender::Drain).ok()?;
        let &[Receipt::Accepted(number)] = &judged[..] else { return None };
        self.remove(seq);
        self.close(&message.key);
        self.accept(&NewMessage { message_id: message.id, ..new }, judged[0]);
        Some(Redriven::AsNew(number))
    }

    fn purge(&mut self, scope: &PurgeScope) -> u64 {
        let mut count = 0;
        // A workflow that is purged whole goes on only when all of it is gone.
        let whole = match scope {
            PurgeScope::Workflow(id) => Some(WorkflowRef::Named(id.clone())),
            _ => None,
        };
        while let Some(seq) = self.next_to_purge(scope) {
            let message = self.remove(seq);
            self.forget_id(&message);
            if message.state != State::Dead {
                self.lift(&message.key, Cause::Exhausted(seq));
                self.give_up(&message);
            }
            if whole.is_none() {
                self.close(&message.key);
            }
            count += 1;
        }
        if let (Some(key), 1..) = (&whole, count) {
            self.close(key);
        }
        count
    }

    /// What is handed out stays.
    fn next_to_purge(&self, scope: &PurgeScope) -> Option<u64> {
        let there = self.messages.iter().filter(|message| !matches!(message.state, State::Locked(_)));
        match scope {
            PurgeScope::Everything => there.map(|message| message.seq).min(),
            PurgeScope::DeadLetters => there.filter(|m| m.state == State::Dead).map(|m| m.seq).min(),
            PurgeScope::DeadLetter(number) => {
                there.filter(|m| m.state == State::Dead && m.seq == number.get()).map(|m| m.seq).min()
            }
            PurgeScope::Workflow(id) => {
                let of_workflow = there.filter(|message| message.key == WorkflowRef::Named(id.clone()));
                // First its line in order, then what is aside, then its dead letters.
                let group = |state: &State| u8::from(*state == State::Dead);
                let key = |m: &&Message| (group(&m.state), !self.in_line(m), m.place(), m.seq);
                of_workflow.min_by_key(key).map(|message| message.seq)
            }
        }
    }
}
