//! Transactions: commands of several queues and workflows that happen together or not at all.
//!
//! A refused command has changed nothing, but the commands before it have. So all of them are tried first, and what they did is
//! taken back; only if none was refused they are done. Between the two nothing happens, so they go the same way again.

use crate::engine::rules::Rules;
use crate::engine::rules::apply::CommandOutcome;
use crate::engine::rules::apply::is_refusal;
use crate::engine::rules::command::Command;
use crate::engine::rules::command::Reply;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::records::Records;
use crate::error::Fault;
use crate::limits;

impl Rules {
    /// Does every step, in order, or none.
    pub(crate) fn transact(
        &mut self,
        now: ClockInstants,
        steps: Vec<Command>,
        records: &mut dyn Records,
    ) -> Result<CommandOutcome, Fault> {
        assert!(steps.len() <= limits::TRANSACTION_STEPS_MAX, "who asks has counted the steps");
        let refused =
            self.in_trial(records, |rules, records| rules.first_refused(now, steps.clone(), records))?;
        if let Some((index, refusal)) = refused {
            return Ok(CommandOutcome {
                reply: Reply::Transact(Err((index, Box::new(refusal)))),
                effects: Vec::new(),
            });
        }
        let (mut replies, mut effects) = (Vec::with_capacity(steps.len()), Vec::new());
        for step in steps {
            let done = self.apply(now, step, records)?;
            assert!(!is_refused(&done.reply), "what was tried goes the same way again: {:?}", done.reply);
            replies.push(done.reply);
            effects.extend(done.effects);
        }
        Ok(CommandOutcome { reply: Reply::Transact(Ok(replies)), effects })
    }

    /// Does the steps until one is refused.
    fn first_refused(
        &mut self,
        now: ClockInstants,
        steps: Vec<Command>,
        records: &mut dyn Records,
    ) -> Result<Option<(usize, Reply)>, Fault> {
        for (index, step) in steps.into_iter().enumerate() {
            assert!(step.can_be_step(), "not everything can be a step of a transaction: {step:?}");
            let reply = self.apply(now, step, records)?.reply;
            if is_refused(&reply) {
                return Ok(Some((index, reply)));
            }
        }
        Ok(None)
    }
}

/// Whether a step was not done. A dead letter that is not there cannot end.
fn is_refused(reply: &Reply) -> bool {
    is_refusal(reply) || matches!(reply, Reply::Purge(Ok(purged)) if purged.count == 0)
}
