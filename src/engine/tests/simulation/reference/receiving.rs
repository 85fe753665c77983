//! What was handed out, compared with what was to be had.

use crate::engine::rules::command::LockedMessage;
use crate::engine::rules::command::WorkflowGrant;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::simulation::reference::Reference;
use crate::engine::tests::simulation::reference::answer::same;
use crate::engine::tests::simulation::reference::naive::Naive;
use crate::engine::tests::simulation::reference::receive::LockOf;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::expect;
use crate::error::ReceiveRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::queue::Order;
use crate::token::LockToken;

/// Why a receive is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unreceived {
    NoQueue,
    NotFound,
    Locked,
    Held,
    LockLost,
    Unordered,
    Other,
}

impl Unreceived {
    fn of(refusal: &ReceiveRefusal) -> Unreceived {
        match refusal {
            ReceiveRefusal::QueueNotFound(_) => Unreceived::NoQueue,
            ReceiveRefusal::MessageNotFound(_) => Unreceived::NotFound,
            ReceiveRefusal::WorkflowLocked => Unreceived::Locked,
            ReceiveRefusal::WorkflowHeld => Unreceived::Held,
            ReceiveRefusal::LockLost => Unreceived::LockLost,
            ReceiveRefusal::Unordered(_) => Unreceived::Unordered,
            _ => Unreceived::Other,
        }
    }
}

type Answer<'a> = Result<&'a [LockedMessage], Unreceived>;

impl Reference {
    pub(crate) fn record_received(&mut self, command: &Command, reply: &Reply) -> Finding {
        let (name, answer) = match (command, reply) {
            (
                Command::AcceptWorkflow(verbs::AcceptWorkflow { queue, workflow, token }),
                Reply::AcceptWorkflow(answer),
            ) => {
                let Some(naive) = self.known(queue) else { return Ok(()) };
                return naive.record_taken(queue, workflow, *token, answer);
            }
            (
                Command::Receive(verbs::Receive { queue, .. })
                | Command::ReceiveRun(verbs::ReceiveRun { queue, .. })
                | Command::ReceiveDeferred(verbs::ReceiveDeferred { queue, .. })
                | Command::ReceiveFromWorkflow(verbs::ReceiveFromWorkflow { queue, .. })
                | Command::ReceiveDeferredFromWorkflow(verbs::ReceiveDeferredFromWorkflow { queue, .. }),
                Reply::Receive(answer),
            ) => (queue, answer.as_deref().map_err(Unreceived::of)),
            _ => return Ok(()),
        };
        let is_there = self.queues.contains_key(name) || self.chained.contains_key(name);
        let is_refused = answer.err() == Some(Unreceived::NoQueue);
        expect(is_there != is_refused, || format!("R {name} is there: {is_there}, and {command:?}"))?;
        let Some(naive) = self.queues.get_mut(name) else { return Ok(()) };
        match command {
            Command::Receive(verbs::Receive { max, token, .. }) => {
                naive.record_received(*max, *token, answer)
            }
            Command::ReceiveRun(verbs::ReceiveRun { max, token, .. }) => {
                naive.record_run(*max, *token, answer)
            }
            Command::ReceiveDeferred(verbs::ReceiveDeferred { sequences, token, .. }) => {
                let expected = naive.check_fetched(sequences);
                naive.record_fetched(*token, answer, expected)
            }
            Command::ReceiveFromWorkflow(verbs::ReceiveFromWorkflow { token, max, .. }) => {
                naive.record_next(*token, *max, answer)
            }
            Command::ReceiveDeferredFromWorkflow(verbs::ReceiveDeferredFromWorkflow {
                token,
                sequences,
                ..
            }) => {
                let expected = naive.check_fetched_by(*token, sequences);
                naive.record_fetched(*token, answer, expected)
            }
            _ => Ok(()),
        }
    }

    fn known(&mut self, queue: &QueueName) -> Option<&mut Naive> {
        self.queues.get_mut(queue)
    }
}

fn numbers(handed: &[LockedMessage]) -> Vec<u64> {
    handed.iter().map(|handed| handed.sequence.get()).collect()
}

impl Naive {
    /// Checks one hand-out, and does it.
    fn record_handed(&mut self, key: &WorkflowRef, handed: &LockedMessage) -> Finding {
        let seq = handed.sequence.get();
        self.hand_out(seq);
        let lock = self.lock(key).expect("it was just granted");
        same(&(handed.token, handed.locked_until), &(lock.token, lock.until))?;
        same(&Some(handed.record.delivery_count), &self.message(seq).map(|message| message.count))?;
        same(&Some(handed.content.body.clone()), &self.message(seq).map(|message| message.body.clone()))
    }

    fn record_received(&mut self, max: usize, token: LockToken, answer: Answer<'_>) -> Finding {
        let handed = answer.map_err(|refusal| format!("R a receive is not refused: {refusal:?}"))?;
        for (index, handed) in handed.iter().enumerate() {
            let seq = handed.sequence.get();
            let offering = self.offering();
            let key = offering.iter().find(|key| self.run(key).first() == Some(&seq)).cloned();
            let Some(key) = key else {
                return Err(format!("R {seq} was given, {offering:?} offer something"));
            };
            self.grant(&key, token.nth(index), LockOf::Messages);
            self.record_handed(&key, handed)?;
            self.close(&key);
        }
        let left = self.offering();
        let is_served = handed.len() == max || self.in_several && !handed.is_empty();
        expect(is_served || left.is_empty(), || format!("R {left:?} offer something, nothing was given"))
    }

    fn record_run(&mut self, max: usize, token: LockToken, answer: Answer<'_>) -> Finding {
        let handed = answer.map_err(|refusal| format!("R a receive is not refused: {refusal:?}"))?;
        let offering = self.offering();
        let Some(first) = handed.first() else {
            return expect(offering.is_empty(), || {
                format!("R {offering:?} offer something, nothing was given")
            });
        };
        let first = first.sequence.get();
        let key = offering.into_iter().find(|key| self.run(key).first() == Some(&first));
        let Some(key) = key else {
            return Err(format!("R a run with {first} was given, which is not offered"));
        };
        let mut run = self.run(&key);
        run.truncate(if self.in_several { handed.len() } else { max });
        same(&numbers(handed), &run)?;
        self.grant(&key, token, LockOf::Run);
        handed.iter().try_for_each(|handed| self.record_handed(&key, handed))?;
        self.close(&key);
        Ok(())
    }

    fn check_fetched(&self, sequences: &[SequenceNumber]) -> Result<Vec<u64>, Unreceived> {
        let mut numbers = Vec::new();
        for seq in sequences.iter().map(|sequence| sequence.get()) {
            let Some(message) = self.message(seq).filter(|_| self.is_asked(seq)) else {
                return Err(Unreceived::NotFound);
            };
            if self.lock(&message.key).is_some() {
                return Err(Unreceived::Locked);
            }
            if self.is_held(&message.key) {
                return Err(Unreceived::Held);
            }
            if !numbers.contains(&seq) {
                numbers.push(seq);
            }
        }
        Ok(numbers)
    }

    fn check_fetched_by(
        &self,
        token: LockToken,
        sequences: &[SequenceNumber],
    ) -> Result<Vec<u64>, Unreceived> {
        let Some(key) = self.held_by(token) else { return Err(Unreceived::LockLost) };
        if self.is_held(&key) {
            return Err(Unreceived::Held);
        }
        let mut numbers = Vec::new();
        for seq in sequences.iter().map(|sequence| sequence.get()) {
            if !self.is_asked(seq) || self.message(seq).is_none_or(|message| message.key != key) {
                return Err(Unreceived::NotFound);
            }
            if !numbers.contains(&seq) {
                numbers.push(seq);
            }
        }
        Ok(numbers)
    }

    fn record_fetched(
        &mut self,
        token: LockToken,
        answer: Answer<'_>,
        expected: Result<Vec<u64>, Unreceived>,
    ) -> Finding {
        same(&answer.map(numbers), &expected)?;
        let mut keys: Vec<WorkflowRef> = Vec::new();
        for handed in answer.unwrap_or_default() {
            let key = self.message(handed.sequence.get()).expect("it was just looked at").key.clone();
            if !keys.contains(&key) {
                keys.push(key.clone());
            }
            if self.lock(&key).is_none() {
                let index = keys.iter().position(|known| *known == key).unwrap_or_default();
                self.grant(&key, token.nth(index), LockOf::Messages);
            }
            self.record_handed(&key, handed)?;
        }
        keys.iter().for_each(|key| self.close(key));
        Ok(())
    }

    fn record_taken(
        &mut self,
        queue: &QueueName,
        workflow: &Option<WorkflowId>,
        token: LockToken,
        answer: &Result<Option<WorkflowGrant>, ReceiveRefusal>,
    ) -> Finding {
        let named = workflow.clone().map(WorkflowRef::Named);
        let refusal = match &named {
            Some(_) if self.options.order == Order::None => Some(Unreceived::Unordered),
            Some(key) if self.lock(key).is_some() => Some(Unreceived::Locked),
            _ => None,
        };
        same(&answer.as_ref().err().map(Unreceived::of), &refusal)?;
        let Ok(taken) = answer else { return Ok(()) };
        let Some(taken) = taken else {
            let offering = self.offering();
            return expect(named.is_none() && offering.is_empty(), || {
                format!("R {queue} offers {offering:?}")
            });
        };
        let key = taken.stream.clone();
        let is_right = named.as_ref().map_or_else(|| self.offering().contains(&key), |named| *named == key);
        expect(is_right, || format!("R {key:?} was taken, {named:?} was asked for"))?;
        self.grant(&key, token, LockOf::Workflow);
        self.close(&key);
        let expected = self.flows.get(&key).and_then(|flow| flow.state.clone());
        same(&taken.state, &expected)?;
        same(&taken.locked_until, &(self.now + self.options.lock))
    }

    fn record_next(&mut self, token: LockToken, max: usize, answer: Answer<'_>) -> Finding {
        let Some(key) = self.held_by(token) else {
            return same(&answer.map(numbers), &Err(Unreceived::LockLost));
        };
        let mut run = self.run(&key);
        let given = answer.map_or(0, <[LockedMessage]>::len);
        run.truncate(if self.in_several && given > 0 { given } else { max });
        same(&answer.map(numbers), &Ok(run))?;
        answer.unwrap_or_default().iter().try_for_each(|handed| self.record_handed(&key, handed))?;
        self.close(&key);
        Ok(())
    }
}
