//! What nobody asks: what is due, and what a process that ended has left.

use crate::engine::rules::step::Step;
use crate::engine::rules::verb::EngineVerb;
use crate::engine::rules::verb::VerbRuling;
use crate::engine::rules::verbs::ExpireLock;
use crate::engine::rules::verbs::Recover;
use crate::engine::rules::verbs::Remind;

impl EngineVerb for Remind {
    fn run(self, step: &mut Step<'_>) -> VerbRuling<Remind> {
        let used_at = step.used_at.get(&self.reminder.queue).copied().unwrap_or_default();
        Ok(step.remind(self.reminder, used_at)?)
    }
}

impl EngineVerb for ExpireLock {
    fn run(self, step: &mut Step<'_>) -> VerbRuling<ExpireLock> {
        Ok(step.expire_lock(self.token)?)
    }
}

impl EngineVerb for Recover {
    fn run(self, step: &mut Step<'_>) -> VerbRuling<Recover> {
        Ok(step.recover()?)
    }
}
