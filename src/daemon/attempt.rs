//! One attempt of a definition's handler, measured, and deferred for as long as the definition says.

use std::sync::Arc;

use crate::clock::Clock;
use crate::daemon::gauges::Gauges;
use crate::handlers::Dispatch;
#[cfg(feature = "otlp")]
use crate::handlers::continue_sender;
use crate::intake::Rule;
use crate::processor::Context;
use crate::processor::Failure;
use crate::processor::Handler;
use crate::processor::Outcome;
use crate::processor::Raw;

/// What a processor of a definition runs.
pub(crate) struct Attempts {
    pub(crate) dispatch: Arc<Dispatch>,
    pub(crate) rule: Arc<Rule>,
    pub(crate) gauges: Gauges,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Handler<Raw> for Attempts {
    async fn handle(&self, context: Context, body: Raw) -> Result<Outcome, Failure> {
        #[cfg(feature = "otlp")]
        continue_sender(&context.message().headers.properties);
        let queue = context.queue().name().clone();
        let _running = self.gauges.begin();
        let began = self.clock.elapsed();
        let ended = self.dispatch.handle(context, body).await;
        self.gauges.note_attempt(&queue, &ended, self.clock.elapsed().saturating_sub(began));
        match (ended, self.rule.defer_delay()) {
            (Ok(Outcome::Defer), Some(delay)) => Ok(Outcome::DeferUntil(self.clock.now() + delay)),
            (ended, _) => ended,
        }
    }
}
