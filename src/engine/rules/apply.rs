//! The rules' one entrance: a command at an instant, against the rows, gives an answer and effects.

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::engine::rules::command::Command;
use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::Reply;
use crate::engine::rules::command::SettleResult;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::effect::Effect;
use crate::engine::rules::lock::LockTable;
use crate::engine::rules::rate_buckets::RateBuckets;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::records::Records;
use crate::engine::rules::settlements::Settlements;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::Stop;
use crate::error::Fault;
use crate::error::QueueRefusal;
use crate::id::QueueName;
use crate::queue::QueueOptions;

/// What a command led to. Its changes are already written to the rows; its effects wait for the commit.
pub(crate) struct CommandOutcome {
    pub(crate) reply: Reply,
    pub(crate) effects: Vec<Effect>,
}

/// The rules with what they keep in memory only.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    locks: LockTable,
    rates: RateBuckets,
    settlements: Settlements,
    /// The last use of queues that left no trace on disk: receives that found nothing, and looks.
    used_at: BTreeMap<QueueId, Timestamp>,
}

impl Rules {
    pub(crate) fn locks(&self) -> &LockTable {
        &self.locks
    }

    pub(crate) fn rates(&self) -> &RateBuckets {
        &self.rates
    }

    #[cfg(test)]
    pub(crate) fn locks_mut(&mut self) -> &mut LockTable {
        &mut self.locks
    }

    #[cfg(test)]
    pub(crate) fn queues_used(&self) -> impl Iterator<Item = &QueueId> {
        self.used_at.keys()
    }

    /// Notes that a queue was used, so that it is not taken for idle.
    pub(crate) fn note_use(&mut self, queue: QueueId, now: Timestamp) {
        self.used_at.insert(queue, now);
    }

    /// Applies one command. Deterministic: the same commands at the same instants against the same rows give the
    /// same rows and the same answers.
    pub(crate) fn apply(
        &mut self,
        now: ClockInstants,
        command: Command,
        records: &mut dyn Records,
    ) -> Result<CommandOutcome, Fault> {
        if let Command::Transact { steps } = command {
            return self.transact(now, steps, records);
        }
        let used_at = self.note_command(now.engine, &command, records)?;
        let mut step = Step::new(now, records, &mut self.locks, &mut self.rates, &mut self.settlements);
        let reply = match command {
            Command::OnRecord { actor, begun, command } => step.run_on_record(&actor, begun, *command)?,
            command => step.run_or_refuse(command, used_at)?,
        };
        let (gone, effects) = (step.gone, step.finish()?);
        if let Some(queue) = gone {
            self.used_at.remove(&queue);
            self.rates.forget(queue);
            self.locks.forget_queue(queue);
        }
        Ok(CommandOutcome { reply, effects })
    }

    /// Answers what a command would be answered, and changes nothing.
    pub(crate) fn try_out(
        &mut self,
        now: ClockInstants,
        command: Command,
        records: &mut dyn Records,
    ) -> Result<Reply, Fault> {
        assert!(command.can_be_tried(), "only what operators do to messages can be tried: {command:?}");
        self.in_trial(records, |rules, records| Ok(rules.apply(now, command, records)?.reply))
    }

    /// Does something and takes all of it back.
    pub(crate) fn in_trial<T>(
        &mut self,
        records: &mut dyn Records,
        work: impl FnOnce(&mut Rules, &mut dyn Records) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        records.begin_trial();
        self.locks.begin_trial();
        self.settlements.begin_trial();
        let done = work(self, records);
        self.settlements.roll_back();
        self.locks.roll_back();
        records.roll_back();
        done
    }

    /// Notes receives, and finds the last use of the queue that a reminder is about.
    fn note_command(
        &mut self,
        now: Timestamp,
        command: &Command,
        records: &dyn Records,
    ) -> Result<Timestamp, Fault> {
        match command {
            Command::Receive { queue, .. }
            | Command::ReceiveRun { queue, .. }
            | Command::ReceiveHidden { queue, .. }
            | Command::ReceiveDeadLetters { queue, .. }
            | Command::Take { queue, .. } => {
                if let Some(queue) = records.queue_named(queue)?
                    && queue.options.delete_when_idle.is_some()
                {
                    self.note_use(queue.id, now);
                }
                Ok(now)
            }
            Command::Remind(reminder) => Ok(self.used_at.get(&reminder.queue).copied().unwrap_or_default()),
            _ => Ok(now),
        }
    }
}

impl Step<'_> {
    /// Does what is asked, or refuses and leaves everything as it is.
    pub(crate) fn run_or_refuse(&mut self, command: Command, used_at: Timestamp) -> Result<Reply, Fault> {
        let reply = self.run(command, used_at)?;
        let changes = self.changes();
        assert!(!is_refusal(&reply) || changes == 0, "a refused command changes nothing: {reply:?}");
        Ok(reply)
    }

    fn run(&mut self, command: Command, used_at: Timestamp) -> Result<Reply, Fault> {
        Ok(match command {
            Command::CreateQueue { name, options } => {
                self.queue_reply(&name, *options, Step::create_queue)?
            }
            Command::ChangeQueue { name, options } => {
                self.queue_reply(&name, *options, Step::change_queue)?
            }
            Command::DeleteQueue { name } => Reply::Queue(answer(self.delete_queue(&name))?),
            Command::PauseQueue { name, paused } => Reply::Queue(answer(self.pause_queue(&name, paused))?),
            Command::ChangeTopic { name, change } => Reply::Topic(answer(self.change_topic(&name, change))?),
            Command::Publish { topic, fanout } => Reply::Send(answer(self.publish(&topic, fanout))?),
            Command::PublishOnce { topic, key, fanout } => {
                Reply::PublishOnce(answer(self.publish_once(&topic, &key, fanout))?)
            }
            Command::Send { queue, messages } => Reply::Send(answer(self.send(&queue, messages))?),
            Command::SendEach { queue, messages } => Reply::SendEach(self.send_each(&queue, messages)?),
            Command::SendOnce { queue, key, messages } => {
                Reply::Send(answer(self.send_once(&queue, &key, messages))?)
            }
            Command::Cancel { queue, sequence, void } => {
                Reply::Send(answer(self.cancel(&queue, sequence, void))?.map(|()| Vec::new()))
            }
            Command::Reschedule { queue, sequence, at } => {
                Reply::Send(answer(self.reschedule(&queue, sequence, at))?.map(|()| Vec::new()))
            }
            Command::Receive { queue, max, token } => {
                Reply::Receive(answer(self.receive(&queue, max, token))?)
            }
            Command::ReceiveRun { queue, max, token } => {
                Reply::Receive(answer(self.receive_run(&queue, max, token))?)
            }
            Command::ReceiveDeferred { queue, sequences, token } => {
                Reply::Receive(answer(self.receive_deferred(&queue, &sequences, token))?)
            }
            Command::Take { queue, workflow, token } => {
                Reply::Take(answer(self.take(&queue, workflow, token))?)
            }
            Command::ReceiveTaken { queue, token, max } => {
                Reply::Receive(answer(self.receive_taken(&queue, token, max))?)
            }
            Command::ReceiveTakenDeferred { queue, token, sequences } => {
                Reply::Receive(answer(self.receive_taken_deferred(&queue, token, &sequences))?)
            }
            Command::ReceiveDeadLetters { queue, max, token } => {
                Reply::Receive(answer(self.receive_dead_letters(&queue, max, token))?)
            }
            Command::ReceiveDeferredDeadLetters { queue, sequences, token } => {
                Reply::Receive(answer(self.receive_deferred_dead_letters(&queue, &sequences, token))?)
            }
            other => return self.run_holders_command(other, used_at),
        })
    }

    fn run_holders_command(&mut self, command: Command, used_at: Timestamp) -> Result<Reply, Fault> {
        let unit = |()| SettleResult::default();
        Ok(match command {
            Command::CloseTaken { queue, token } => {
                Reply::Settle(answer(self.close_taken(&queue, token))?.map(unit))
            }
            Command::Settle { queue, token, sequence, delivery_count, settlement } => {
                let held = DeliveryRef { token, sequence, delivery_count };
                Reply::Settle(answer(self.settle(&queue, held, settlement))?)
            }
            Command::SettleRun { queue, token, settlement } => {
                Reply::Settle(answer(self.settle_run(&queue, token, settlement))?)
            }
            Command::CompleteAll { queue, deliveries } => {
                let complete = |held| answer(self.complete(&queue, held));
                Reply::CompleteAll(deliveries.into_iter().map(complete).collect::<Result<_, Fault>>()?)
            }
            Command::ReceiveHidden { queue, max, lasts } => {
                Reply::ReceiveHidden(answer(self.receive_hidden(&queue, max, lasts))?)
            }
            Command::HideAgain { queue, claim, lasts, body } => {
                Reply::HideAgain(answer(self.hide_again(&queue, claim, lasts, body))?.map(Box::new))
            }
            Command::EndHidden { queue, claim } => {
                Reply::Settle(answer(self.end_hidden(&queue, claim))?.map(unit))
            }
            Command::Renew { queue, token } => Reply::Settle(answer(self.renew(&queue, token))?),
            Command::SettleApart { queue, token } => {
                Reply::Settle(answer(self.settle_apart(&queue, token))?.map(unit))
            }
            Command::SetTakenState { queue, token, state } => {
                Reply::Settle(answer(self.set_taken_state(&queue, token, state))?.map(unit))
            }
            other => return self.run_operators_command(other, used_at),
        })
    }

    fn run_operators_command(&mut self, command: Command, used_at: Timestamp) -> Result<Reply, Fault> {
        Ok(match command {
            Command::SetState { queue, workflow, state } => {
                Reply::Operate(answer(self.set_state_of(&queue, workflow, state))?)
            }
            Command::Operate { queue, workflow, operation } => {
                Reply::Operate(answer(self.operate(&queue, workflow, operation))?)
            }
            Command::Redrive { queue, sequence, position } => {
                Reply::Redrive(answer(self.redrive(&queue, sequence, position))?)
            }
            Command::EditAndRedrive { queue, edit } => {
                Reply::Redrive(answer(self.edit_and_redrive(&queue, edit))?)
            }
            Command::Purge { queue, scope, from } => Reply::Purge(answer(self.purge(&queue, scope, from))?),
            Command::Remind(reminder) => {
                self.remind(reminder, used_at)?;
                Reply::Done { more: false }
            }
            Command::ExpireLock { token } => {
                self.expire_lock(token)?;
                Reply::Done { more: false }
            }
            Command::Recover => Reply::Done { more: self.recover()? },
            other => unreachable!("every command has its rule: {other:?}"),
        })
    }

    fn queue_reply(
        &mut self,
        name: &QueueName,
        options: QueueOptions,
        rule: impl FnOnce(&mut Self, &QueueName, QueueOptions) -> Ruling<bool, QueueRefusal>,
    ) -> Result<Reply, Fault> {
        Ok(Reply::Queue(answer(rule(self, name, options))?))
    }
}

/// Parts an answer, which may be a refusal, from a fault.
fn answer<T, R>(ruling: Ruling<T, R>) -> Result<Result<T, R>, Fault> {
    match ruling {
        Ok(done) => Ok(Ok(done)),
        Err(Stop::Refused(refusal)) => Ok(Err(refusal)),
        Err(Stop::Fault(fault)) => Err(fault),
    }
}

pub(crate) fn is_refusal(reply: &Reply) -> bool {
    match reply {
        Reply::Queue(answer) => answer.is_err(),
        Reply::Topic(answer) => answer.is_err(),
        Reply::Send(answer) => answer.is_err(),
        Reply::PublishOnce(answer) => answer.is_err(),
        Reply::Receive(answer) => answer.is_err(),
        Reply::Take(answer) => answer.is_err(),
        Reply::ReceiveHidden(answer) => answer.is_err(),
        Reply::HideAgain(answer) => answer.is_err(),
        Reply::Settle(answer) => answer.is_err(),
        Reply::CompleteAll(answers) => answers.iter().all(Result::is_err),
        Reply::SendEach(answers) => answers.iter().all(Result::is_err),
        Reply::Operate(answer) => answer.is_err(),
        Reply::Redrive(answer) => answer.is_err(),
        Reply::Purge(answer) => answer.is_err(),
        Reply::Transact(answer) => answer.is_err(),
        Reply::Done { .. } => false,
    }
}
