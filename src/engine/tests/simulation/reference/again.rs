//! Settlements that are asked again: for a minute the same is answered as it was, and another is told what was done.

use crate::clock::Timestamp;
use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::Retry;
use crate::engine::rules::command::RunSettlement;
use crate::engine::rules::command::SettleResult;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::receipt::Receipt;
use crate::engine::tests::simulation::reference::Reference;
use crate::engine::tests::simulation::reference::answer::same;
use crate::engine::tests::simulation::reference::holder::Refused;
use crate::engine::tests::simulation::view::Finding;
use crate::error::SettleRefusal;
use crate::error::SettledHow;
use crate::id::QueueName;
use crate::token::LockToken;

/// A delivery: its lock, its number and its count.
pub(crate) type Delivery = (LockToken, u64, u32);

type Answer = Result<SettleResult, SettleRefusal>;

/// A settlement that was done.
#[derive(Clone, Debug)]
pub(crate) struct Done<S> {
    pub(crate) queue: QueueName,
    /// Nothing for a message that was settled in a run.
    pub(crate) asked: Option<S>,
    pub(crate) how: SettledHow,
    pub(crate) receipts: Vec<Receipt>,
    pub(crate) until: Timestamp,
}

/// A settlement without the chance in it.
pub(crate) fn plain(settlement: &Settlement) -> Settlement {
    let mut settlement = settlement.clone();
    if let Settlement::Abandon { retry, .. }
    | Settlement::Suspect { retry, .. }
    | Settlement::Postpone { retry, .. } = &mut settlement
        && matches!(retry, Retry::Backoff(_))
    {
        *retry = Retry::Backoff(0);
    }
    settlement
}

/// The same of a run; where it begins is not compared.
pub(crate) fn plain_run(settlement: &RunSettlement) -> RunSettlement {
    RunSettlement { next: settlement.next.as_ref().map(plain), first: None, ..settlement.clone() }
}

fn how_of(settlement: &Settlement) -> SettledHow {
    match settlement {
        Settlement::Complete(_) => SettledHow::Completed,
        Settlement::Abandon { .. } | Settlement::Suspect { .. } | Settlement::Postpone { .. } => {
            SettledHow::Abandoned
        }
        Settlement::Defer { .. } => SettledHow::Deferred,
        Settlement::DeadLetter { .. } => SettledHow::DeadLettered,
        Settlement::Release => SettledHow::Released,
    }
}

fn expected<S: PartialEq>(
    done: Option<&Done<S>>,
    asked: &S,
    else_refused: Refused,
) -> Result<Vec<Receipt>, Refused> {
    match done {
        Some(done) if done.asked.as_ref() == Some(asked) => Ok(done.receipts.clone()),
        Some(done) => Err(Refused::AlreadySettled(done.how)),
        None => Err(else_refused),
    }
}

fn answered(answer: &Answer) -> Result<Vec<Receipt>, Refused> {
    answer.as_ref().map(|settled| settled.receipts.clone()).map_err(Refused::of)
}

impl Reference {
    fn until(&self) -> Timestamp {
        self.now + std::time::Duration::from_secs(60)
    }

    fn settled_lately(&self, queue: &QueueName, held: DeliveryRef) -> Option<&Done<Settlement>> {
        let delivery = (held.token, held.sequence.get(), held.delivery_count);
        self.settled.get(&delivery).filter(|done| done.queue == *queue && self.now < done.until)
    }

    fn run_settled_lately(&self, queue: &QueueName, token: LockToken) -> Option<&(u64, Done<RunSettlement>)> {
        self.runs.get(&token).filter(|(_, done)| done.queue == *queue && self.now < done.until)
    }

    /// A settlement of what is not held was answered.
    pub(crate) fn record_again(
        &self,
        queue: &QueueName,
        held: DeliveryRef,
        (settlement, answer): (&Settlement, &Answer),
        refused: Refused,
    ) -> Finding {
        let done = self.settled_lately(queue, held);
        same(&answered(answer), &expected(done, &plain(settlement), refused))
    }

    /// A settlement of a run that is not held, or not left from there on, was answered.
    pub(crate) fn record_run_again(
        &self,
        queue: &QueueName,
        token: LockToken,
        (run, answer): (&RunSettlement, &Answer),
        refused: Refused,
    ) -> Finding {
        let done = self.run_settled_lately(queue, token);
        let is_there = |first: u64| run.first.is_none_or(|said| said.get() == first);
        let expected = match done {
            Some((first, done)) if !is_there(*first) => Err(Refused::AlreadySettled(done.how)),
            done => expected(done.map(|(_, done)| done), &plain_run(run), refused),
        };
        same(&answered(answer), &expected)
    }

    /// Whether an answer is one that was given before, in a queue whose holders are not known.
    pub(crate) fn is_again(
        &self,
        queue: &QueueName,
        held: DeliveryRef,
        settlement: &Settlement,
        answer: &Answer,
    ) -> bool {
        let done =
            self.settled_lately(queue, held).filter(|done| done.asked.as_ref() == Some(&plain(settlement)));
        done.is_some_and(|done| answered(answer).as_ref() == Ok(&done.receipts))
    }

    pub(crate) fn is_run_again(
        &self,
        queue: &QueueName,
        token: LockToken,
        run: &RunSettlement,
        answer: &Answer,
    ) -> bool {
        let done = self.run_settled_lately(queue, token).map(|(_, done)| done);
        let done = done.filter(|done| done.asked.as_ref() == Some(&plain_run(run)));
        done.is_some_and(|done| answered(answer).as_ref() == Ok(&done.receipts))
    }

    /// A delivery was settled alone.
    pub(crate) fn note_done(
        &mut self,
        queue: &QueueName,
        held: DeliveryRef,
        settlement: &Settlement,
        receipts: Vec<Receipt>,
    ) {
        let (asked, how, until) = (Some(plain(settlement)), how_of(settlement), self.until());
        let done = Done { queue: queue.clone(), asked, how, receipts, until };
        self.settled.insert((held.token, held.sequence.get(), held.delivery_count), done);
    }

    /// A run was settled: what was left of it, each with its count.
    pub(crate) fn note_run_done(
        &mut self,
        queue: &QueueName,
        (token, out): (LockToken, &[(u64, u32)]),
        run: &RunSettlement,
        receipts: Vec<Receipt>,
    ) {
        let until = self.until();
        let how_at = |at: usize| match &run.next {
            _ if at < run.completed => Some(SettledHow::Completed),
            Some(Settlement::Suspect { .. }) => Some(SettledHow::Abandoned),
            Some(next) if at == run.completed => Some(how_of(next)),
            _ => (!run.keep_rest).then_some(SettledHow::Released),
        };
        for (at, (seq, count)) in out.iter().enumerate() {
            let Some(how) = how_at(at) else { continue };
            let done = Done { queue: queue.clone(), asked: None, how, receipts: Vec::new(), until };
            self.settled.insert((token, *seq, *count), done);
        }
        let Some((first, _)) = out.first() else { return };
        let how = match &run.next {
            _ if run.completed > 0 => SettledHow::Completed,
            next => next.as_ref().map_or(SettledHow::Released, how_of),
        };
        let done = Done { queue: queue.clone(), asked: Some(plain_run(run)), how, receipts, until };
        self.runs.insert(token, (*first, done));
    }
}
