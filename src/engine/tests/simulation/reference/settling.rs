//! How deliveries were ended, compared with how they can be.

use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::RunSettlement;
use crate::engine::rules::command::SettleResult;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::command::StateChange;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::simulation::reference::Reference;
use crate::engine::tests::simulation::reference::answer::same;
use crate::engine::tests::simulation::reference::holder::Refused;
use crate::engine::tests::simulation::reference::naive::Naive;
use crate::engine::tests::simulation::reference::send::Sender;
use crate::engine::tests::simulation::reference::send::Unsent;
use crate::engine::tests::simulation::view::Finding;
use crate::error::SettleRefusal;
use crate::id::QueueName;
use crate::message::NewMessage;
use crate::token::LockToken;

type Answer = Result<SettleResult, SettleRefusal>;

/// What a completion sends: where, what, and what is answered to it; `None` where the reference cannot know.
type Sends<'a> = Option<(&'a QueueName, &'a [NewMessage], Option<Vec<Receipt>>)>;

impl Reference {
    pub(crate) fn record_settled(&mut self, command: &Command, reply: &Reply) -> Finding {
        match (command, reply) {
            (
                Command::Settle(verbs::Settle { queue, token, sequence, delivery_count, settlement }),
                Reply::Settle(answer),
            ) => {
                let held =
                    DeliveryRef { token: *token, sequence: *sequence, delivery_count: *delivery_count };
                self.record_one(queue, held, settlement, answer)
            }
            (Command::CompleteAll(verbs::CompleteAll { queue, deliveries }), Reply::CompleteAll(answers)) => {
                let complete = Settlement::Complete(CompletionCommand::default());
                for (held, answer) in deliveries.iter().zip(answers) {
                    let answer = answer.clone().map(|()| SettleResult::default());
                    self.record_one(queue, *held, &complete, &answer)?;
                }
                Ok(())
            }
            (Command::SettleRun(verbs::SettleRun { queue, token, settlement }), Reply::Settle(answer)) => {
                self.record_run(queue, *token, settlement, answer)
            }
            (Command::Renew(verbs::Renew { queue, token }), Reply::Settle(answer)) => {
                let Some(naive) = self.queues.get_mut(queue) else { return Ok(()) };
                let until = naive.now + naive.options.lock;
                let renewed = naive.held_by(*token).and_then(|key| naive.flow(&key).lock.as_mut());
                let expected = renewed.map(|lock| {
                    lock.until = until;
                    until
                });
                same(&answer.as_ref().ok().and_then(|settled| settled.locked_until), &expected)
            }
            (Command::CloseWorkflow(verbs::CloseWorkflow { queue, token }), Reply::Settle(answer)) => {
                let Some(naive) = self.queues.get_mut(queue) else { return Ok(()) };
                let key = naive.held_by(*token);
                if let Some(key) = &key {
                    naive.close_workflow(key);
                    naive.close(key);
                }
                same(&answer.is_ok(), &key.is_some())
            }
            (Command::SettleApart(verbs::SettleApart { queue, token }), Reply::Settle(answer)) => {
                let Some(naive) = self.queues.get_mut(queue) else { return Ok(()) };
                let key = naive.held_by(*token);
                if let Some(lock) = key.as_ref().and_then(|key| naive.flow(key).lock.as_mut()) {
                    lock.is_apart = true;
                }
                same(&answer.is_ok(), &key.is_some())
            }
            (
                Command::SetWorkflowState(verbs::SetWorkflowState { queue, token, state }),
                Reply::Settle(answer),
            ) => {
                let Some(naive) = self.queues.get_mut(queue) else { return Ok(()) };
                let key = naive.held_by(*token).filter(|key| matches!(key, WorkflowRef::Named(_)));
                if let Some(key) = &key {
                    naive.set_state(key, state.clone());
                    naive.close(key);
                }
                same(&answer.is_ok(), &key.is_some())
            }
            _ => Ok(()),
        }
    }

    fn record_one(
        &mut self,
        queue: &QueueName,
        held: DeliveryRef,
        settlement: &Settlement,
        answer: &Answer,
    ) -> Finding {
        let completion = match settlement {
            Settlement::Complete(completion) => completion.clone(),
            _ => CompletionCommand::default(),
        };
        let Some(naive) = self.queues.get(queue) else {
            if self.is_again(queue, held, settlement, answer) {
                return Ok(());
            }
            self.record_elsewhere(queue, &completion, answer)?;
            if let Ok(settled) = answer {
                self.note_done(queue, held, settlement, settled.receipts.clone());
            }
            return Ok(());
        };
        let (seq, count) = (held.sequence.get(), held.delivery_count);
        let key = naive.held_by(held.token).ok_or(Refused::LockLost);
        let key = match key.and_then(|key| naive.check_held(&key, seq, count).map(|()| key)) {
            Ok(key) => key,
            Err(_) if *settlement == Settlement::Release && self.record_behind(queue, held) => {
                self.note_done(queue, held, settlement, Vec::new());
                return same(&answer.is_ok(), &true);
            }
            Err(refused) => return self.record_again(queue, held, (settlement, answer), refused),
        };
        let expected = Ok(key).and_then(|key| naive.check_state(&key, &completion).map(|()| key));
        let (key, sends) = match self.judge_sends(queue, &completion, &[seq], expected) {
            Ok(judged) => judged,
            Err(refused) => return refused_as(answer, refused),
        };
        let Some(receipts) = receipts_of(answer, &sends)? else { return Ok(()) };
        let naive = self.queues.get_mut(queue).expect("it was just looked at");
        naive.settle(&key, seq, settlement);
        self.finish(queue, &key, &completion, sends, receipts.clone());
        self.note_done(queue, held, settlement, receipts);
        Ok(())
    }

    /// Says whether what a holder gives back was taken back with one before it.
    fn record_behind(&mut self, queue: &QueueName, held: DeliveryRef) -> bool {
        let Some(naive) = self.queues.get_mut(queue) else { return false };
        let Some(key) = naive.held_by(held.token) else { return false };
        let is_behind = naive.give_back_behind(&key, held.sequence.get(), held.delivery_count);
        if is_behind {
            naive.close(&key);
        }
        is_behind
    }

    fn record_run(
        &mut self,
        queue: &QueueName,
        token: LockToken,
        run: &RunSettlement,
        answer: &Answer,
    ) -> Finding {
        let RunSettlement { completed, completion, next, keep_rest, first } = run;
        let Some(naive) = self.queues.get(queue) else {
            if self.is_run_again(queue, token, run, answer) {
                return Ok(());
            }
            self.record_elsewhere(queue, completion, answer)?;
            if let (Ok(settled), Some(first)) = (answer, first) {
                self.note_run_done(queue, (token, &[(first.get(), 0)]), run, settled.receipts.clone());
            }
            return Ok(());
        };
        let Some(key) = naive.held_by(token) else {
            return self.record_run_again(queue, token, (run, answer), Refused::LockLost);
        };
        let out = naive.lock(&key).map(|lock| lock.out.clone()).unwrap_or_default();
        if first.is_some_and(|first| out.first() != Some(&first.get())) {
            return self.record_run_again(queue, token, (run, answer), Refused::NotFound);
        }
        let counted: Vec<(u64, u32)> =
            out.iter().filter_map(|seq| Some((*seq, naive.message(*seq)?.count))).collect();
        let needed = completed + usize::from(next.is_some());
        let expected = if needed > out.len() { Err(Refused::NotFound) } else { Ok(key) };
        let expected = expected.and_then(|key| naive.check_state(&key, completion).map(|()| key));
        let ended = (*completed).min(out.len());
        let (key, sends) = match self.judge_sends(queue, completion, &out[..ended], expected) {
            Ok(judged) => judged,
            Err(refused) => return refused_as(answer, refused),
        };
        let Some(receipts) = receipts_of(answer, &sends)? else { return Ok(()) };
        let naive = self.queues.get_mut(queue).expect("it was just looked at");
        let complete = Settlement::Complete(CompletionCommand::default());
        out[..*completed].iter().for_each(|seq| naive.settle(&key, *seq, &complete));
        if let Some(Settlement::Suspect { retry, .. }) = next {
            naive.fail_run(&key, &out[*completed..], *retry);
        } else {
            for seq in out[needed..].iter().filter(|_| !keep_rest) {
                naive.take_back(&key, *seq);
                naive.give_back(*seq);
            }
            if let Some(next) = next {
                naive.settle(&key, out[*completed], next);
            }
        }
        self.finish(queue, &key, completion, sends, receipts.clone());
        self.note_run_done(queue, (token, &counted), run, receipts);
        Ok(())
    }

    /// Judges what a completion sends, before anything is changed, as if it were done already.
    fn judge_sends<'a>(
        &self,
        queue: &QueueName,
        completion: &'a CompletionCommand,
        ended: &[u64],
        key: Result<WorkflowRef, Refused>,
    ) -> Result<(WorkflowRef, Sends<'a>), Refused> {
        let key = key?;
        let Some((to, messages)) = completion.sends.first() else { return Ok((key, None)) };
        if self.chained.contains_key(to) {
            return Ok((key, Some((to, messages, None))));
        }
        let Some(naive) = self.queues.get(to) else { return Err(Refused::Send(Unsent::NoQueue)) };
        let ended = if to == queue { ended } else { &[] };
        let sender = Sender::Completing(ended);
        let receipts = naive.judge(messages, self.last + 1, sender).map_err(Refused::Send)?;
        Ok((key, Some((to, messages, Some(receipts)))))
    }

    /// The state is set, an empty lock ends, the messages are sent, and only then is the workflow closed.
    fn finish(
        &mut self,
        queue: &QueueName,
        key: &WorkflowRef,
        completion: &CompletionCommand,
        sends: Sends<'_>,
        receipts: Vec<Receipt>,
    ) {
        let naive = self.queues.get_mut(queue).expect("it was just looked at");
        match &completion.state {
            StateChange::Keep => {}
            StateChange::Clear => naive.set_state(key, None),
            StateChange::Set(state) => naive.set_state(key, Some(state.clone())),
        }
        naive.end_empty_lock(key);
        if let Some((to, messages, _)) = sends {
            self.accept(to, messages, &receipts);
        }
        let naive = self.queues.get_mut(queue).expect("it was just looked at");
        naive.close(key);
    }

    /// A delivery of a queue that the reference does not know was settled; what it sent may be for one that it knows.
    fn record_elsewhere(
        &mut self,
        queue: &QueueName,
        completion: &CompletionCommand,
        answer: &Answer,
    ) -> Finding {
        let is_there = self.chained.contains_key(queue);
        let Ok(settled) = answer else {
            return if is_there { Ok(()) } else { refused_as(answer, Refused::NoQueue) };
        };
        let Some((to, messages)) = completion.sends.first() else { return Ok(()) };
        if let Some(naive) = self.queues.get(to) {
            let expected = naive.judge(messages, self.last + 1, Sender::Drain);
            same(&Ok(settled.receipts.clone()), &expected)?;
        }
        self.accept(to, messages, &settled.receipts);
        Ok(())
    }
}

fn refused_as(answer: &Answer, expected: Refused) -> Finding {
    same(&answer.as_ref().map(drop).map_err(Refused::of), &Err(expected))
}

/// The receipts that were answered, if they are the expected ones; `None` where another queue has refused.
fn receipts_of(answer: &Answer, sends: &Sends<'_>) -> Result<Option<Vec<Receipt>>, String> {
    let is_unknown = matches!(sends, Some((_, _, None)));
    match (answer, sends) {
        (Ok(settled), Some((_, _, Some(expected)))) => same(&settled.receipts, expected)?,
        (Err(SettleRefusal::Send(_)), _) if is_unknown => return Ok(None),
        (Err(refusal), _) => return Err(format!("R it was refused: {refusal:?}")),
        _ => {}
    }
    Ok(answer.as_ref().ok().map(|settled| settled.receipts.clone()))
}

impl Naive {
    /// Only a workflow with a name keeps a state.
    fn check_state(&self, key: &WorkflowRef, completion: &CompletionCommand) -> Result<(), Refused> {
        let has_none = matches!(key, WorkflowRef::Single(_)) && completion.state != StateChange::Keep;
        if has_none { Err(Refused::NoWorkflow) } else { Ok(()) }
    }
}
