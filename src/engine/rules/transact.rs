//! Transactions: commands of several queues and workflows that happen together or not at all.
//!
//! A refused command has changed nothing, but the commands before it have. So all of them are tried first, and what they did is
//! taken back; only if none was refused they are done. Between the two nothing happens, so they go the same way again.

use serde::Deserialize;
use serde::Serialize;
use thiserror::Error;

use crate::engine::rules::log_weight::LogWeight;
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::room_need::RoomNeed;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::refuse;
use crate::engine::rules::verb::Answer;
use crate::engine::rules::verb::EngineVerb;
use crate::engine::rules::verb::VerbRuling;
use crate::engine::rules::verbs::Cancel;
use crate::engine::rules::verbs::Command;
use crate::engine::rules::verbs::Publish;
use crate::engine::rules::verbs::Send;
use crate::engine::rules::verbs::SetWorkflowState;
use crate::engine::rules::verbs::Settle;
use crate::engine::rules::verbs::Transact;
use crate::error::SendRefusal;
use crate::error::SettleRefusal;
use crate::limits;

/// What can be a step of a transaction: what producers and holders do to messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum StepCommand {
    Send(Send),
    Publish(Publish),
    Cancel(Cancel),
    Settle(Settle),
    SetWorkflowState(SetWorkflowState),
}

/// Why a step was not done.
#[derive(Clone, Debug, Error, Serialize, Deserialize)]
pub(crate) enum StepRefusal {
    #[error(transparent)]
    Send(#[from] SendRefusal),
    #[error(transparent)]
    Settle(#[from] SettleRefusal),
}

/// Which step, counted from zero, was refused, and how: then none was done.
#[derive(Clone, Debug, Error, Serialize, Deserialize)]
#[error("step {index} of the transaction: {refusal}")]
pub(crate) struct RefusedStep {
    pub(crate) index: usize,
    pub(crate) refusal: StepRefusal,
}

/// The same for the verb in a step, whichever that is.
macro_rules! each {
    ($step:expr, $verb:pat => $then:expr) => {
        match $step {
            StepCommand::Send($verb) => $then,
            StepCommand::Publish($verb) => $then,
            StepCommand::Cancel($verb) => $then,
            StepCommand::Settle($verb) => $then,
            StepCommand::SetWorkflowState($verb) => $then,
        }
    };
}

impl StepCommand {
    fn run(self, step: &mut Step<'_>) -> Ruling<Reply, StepRefusal> {
        each!(self, verb => replied(step.run_or_refuse(verb)?))
    }

    fn without_room(&self) -> Option<StepRefusal> {
        each!(self, verb => verb.without_room()?.err().map(StepRefusal::from))
    }
}

/// A step's answer, without its kind.
fn replied<D, R>(answer: Result<D, R>) -> Ruling<Reply, StepRefusal>
where
    R: Into<StepRefusal>,
    Reply: From<Result<D, R>>,
{
    match answer {
        Err(refusal) => refuse(refusal.into()),
        done => Ok(Reply::from(done)),
    }
}

impl From<StepCommand> for Command {
    fn from(step: StepCommand) -> Command {
        each!(step, verb => Command::from(verb))
    }
}

#[cfg(test)]
impl Command {
    /// The same as a step of a transaction, if it can be one.
    pub(crate) fn into_step(self) -> Option<StepCommand> {
        match self {
            Command::Send(verb) => Some(StepCommand::Send(verb)),
            Command::Publish(verb) => Some(StepCommand::Publish(verb)),
            Command::Cancel(verb) => Some(StepCommand::Cancel(verb)),
            Command::Settle(verb) => Some(StepCommand::Settle(verb)),
            Command::SetWorkflowState(verb) => Some(StepCommand::SetWorkflowState(verb)),
            _ => None,
        }
    }
}

impl EngineVerb for Transact {
    /// Does every step, in order, or none.
    fn run(self, step: &mut Step<'_>) -> VerbRuling<Transact> {
        assert!(self.steps.len() <= limits::TRANSACTION_STEPS_MAX, "who asks has counted the steps");
        step.settlements.make_room(limits::TRANSACTION_STEPS_MAX);
        step.settlements.begin_transaction();
        let done = self.try_and_do(step);
        step.settlements.end_transaction();
        done
    }

    fn bytes(&self) -> usize {
        self.steps.iter().map(|step| each!(step, verb => verb.bytes())).sum()
    }

    fn weigh(&self, records: &dyn Records, weight: &mut LogWeight) -> Read<()> {
        self.steps.iter().try_for_each(|step| each!(step, verb => verb.weigh(records, weight)))
    }

    fn is_bulk(&self) -> bool {
        true
    }

    fn room(&self, records: &dyn Records) -> Read<RoomNeed> {
        let mut bytes = 0;
        for step in &self.steps {
            bytes += each!(step, verb => verb.room(records))?.bytes();
        }
        let ends = |step: &StepCommand| matches!(step, StepCommand::Settle(_));
        Ok(match bytes {
            0 => RoomNeed::Nothing,
            _ if self.steps.iter().any(ends) => RoomNeed::HeadRoom(bytes),
            _ => RoomNeed::Room(bytes),
        })
    }

    fn without_room(&self) -> Option<Answer<Transact>> {
        let refused =
            |(index, step): (usize, &StepCommand)| Some(RefusedStep { index, refusal: step.without_room()? });
        self.steps.iter().enumerate().find_map(refused).map(Err)
    }
}

impl Transact {
    fn try_and_do(self, step: &mut Step<'_>) -> VerbRuling<Transact> {
        step.in_trial(|mut step| step.run_steps(self.steps.clone()))?;
        let done = step.run_steps(self.steps);
        done.map_err(|stop| stop.map(|refused| panic!("what was tried goes the same way again: {refused}")))
    }
}

impl Step<'_> {
    /// Does the steps until one is refused, each as a command of its own.
    fn run_steps(&mut self, steps: Vec<StepCommand>) -> Ruling<Vec<Reply>, RefusedStep> {
        let mut replies = Vec::with_capacity(steps.len());
        for (index, command) in steps.into_iter().enumerate() {
            let mut step = self.next_step();
            let reply = command.run(&mut step);
            let reply = reply.map_err(|stop| stop.map(|refusal| RefusedStep { index, refusal }))?;
            let joined = step.joined;
            let effects = step.finish()?;
            self.joined = joined;
            self.effects.extend(effects);
            replies.push(reply);
        }
        Ok(replies)
    }

    /// Does something in a step of its own, and takes all of it back.
    pub(crate) fn in_trial<T>(&mut self, work: impl FnOnce(Step<'_>) -> T) -> T {
        self.records.begin_trial();
        self.locks.begin_trial();
        self.settlements.begin_trial();
        let done = work(self.next_step());
        self.settlements.roll_back();
        self.locks.roll_back();
        self.records.roll_back();
        done
    }
}
