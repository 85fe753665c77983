//! The rules' one entrance: a command at an instant, against the rows, gives an answer and effects.

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::effect::Effect;
use crate::engine::rules::lock::LockTable;
use crate::engine::rules::rate_buckets::RateBuckets;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::records::MutableRecords;
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::settlements::Settlements;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::answer;
use crate::engine::rules::verb::Answer;
use crate::engine::rules::verb::EngineVerb;
use crate::engine::rules::verb::VerbOutcome;
use crate::engine::rules::verb::surely;
use crate::engine::rules::verbs::Command;
use crate::error::Fault;
use crate::id::QueueName;

/// What a command led to. Its changes are already written to the rows; its effects wait for the commit.
pub(crate) struct CommandOutcome<A> {
    pub(crate) reply: A,
    pub(crate) effects: Vec<Effect>,
    /// How many rows it has changed.
    pub(crate) changes: usize,
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
    /// The rules of a file with these queues that was opened. Who waited for messages before, or looked, left no trace, and nobody could
    /// while it was closed: to open it is a use of each queue.
    pub(crate) fn opened<'q>(queues: impl Iterator<Item = &'q QueueRecord>, now: Timestamp) -> Rules {
        let mut rules = Rules::default();
        for queue in queues.filter(|queue| queue.options.delete_when_idle.is_some()) {
            rules.note_use(queue.id, now);
        }
        rules
    }

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

    /// Applies a command of any kind, as [`Rules::run`] does.
    pub(crate) fn apply(
        &mut self,
        now: ClockInstants,
        command: Command,
        records: &mut dyn MutableRecords,
    ) -> Result<CommandOutcome<Reply>, Fault> {
        let CommandOutcome { reply, effects, changes } = self.run(now, command, records)?;
        Ok(CommandOutcome { reply: surely(reply), effects, changes })
    }

    /// Does what a verb asks. Deterministic: the same verbs at the same instants against the same rows give the same
    /// rows and the same answers.
    pub(crate) fn run<V: EngineVerb>(
        &mut self,
        now: ClockInstants,
        verb: V,
        records: &mut dyn MutableRecords,
    ) -> Result<CommandOutcome<Answer<V>>, Fault> {
        self.note_receive(now.engine, verb.receives_from(), records)?;
        let Rules { locks, rates, settlements, used_at } = self;
        let mut step = Step::new(now, records, locks, rates, settlements, used_at);
        let reply = step.run_or_refuse(verb)?;
        let (gone, changes) = (std::mem::take(&mut step.gone), step.changes());
        let effects = step.finish()?;
        self.forget_queues(gone);
        Ok(CommandOutcome { reply, effects, changes })
    }

    /// Forgets what is kept in memory of queues that are gone.
    fn forget_queues(&mut self, gone: Vec<QueueId>) {
        for queue in gone {
            self.used_at.remove(&queue);
            self.rates.forget(queue);
            self.locks.forget_queue(queue);
        }
    }

    /// Answers what a command would be answered, and changes nothing.
    pub(crate) fn try_out(
        &mut self,
        now: ClockInstants,
        command: Command,
        records: &mut dyn MutableRecords,
    ) -> Result<Reply, Fault> {
        let Rules { locks, rates, settlements, used_at } = self;
        Step::new(now, records, locks, rates, settlements, used_at).in_trial(|mut step| {
            let reply = step.run_or_refuse(command)?;
            step.finish()?;
            Ok(surely(reply))
        })
    }

    /// Notes a receive, which uses its queue whatever it finds.
    fn note_receive(&mut self, now: Timestamp, from: Option<&QueueName>, records: &dyn Records) -> Read<()> {
        if let Some(name) = from
            && let Some(queue) = records.queue_named(name)?
            && queue.options.delete_when_idle.is_some()
        {
            self.note_use(queue.id, now);
        }
        Ok(())
    }
}

impl Step<'_> {
    /// Does what is asked, or refuses and leaves everything as it is.
    pub(crate) fn run_or_refuse<V: EngineVerb>(&mut self, verb: V) -> Read<Answer<V>> {
        let reply = answer(verb.run(self))?;
        let changes = self.changes();
        assert!(!reply.is_refusal() || changes == 0, "a refused command changes nothing: {reply:?}");
        Ok(reply)
    }
}
