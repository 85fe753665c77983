//! One attempt of a definition's handler, measured, and deferred for as long as the definition says.

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "otlp")]
use tracing::Span;

use crate::clock::Clock;
use crate::daemon::gauges::QueueGauges;
use crate::engine::ReceivedMessage;
use crate::handlers::Dispatch;
#[cfg(feature = "otlp")]
use crate::handlers::continue_sender;
use crate::intake::IntakeRule;
use crate::processor::Assignment;
use crate::processor::Context;
use crate::processor::Failure;
use crate::processor::Handler;
use crate::processor::Outcome;
use crate::processor::Raw;
use crate::processor::Taker;

/// The target of the spans of messages that programs take many at once. Nothing is logged inside of them, so a log need not
/// show them; who exports spans should.
pub const ASSIGNMENT_SPANS: &str = Assignment::SPAN_TARGET;

/// What a processor of a definition runs.
#[derive(Clone)]
pub(crate) struct Attempts {
    pub(crate) dispatch: Arc<Dispatch>,
    pub(crate) rule: Arc<IntakeRule>,
    pub(crate) gauges: QueueGauges,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Attempts {
    /// Defers for as long as the definition says.
    fn deferred(&self, ended: Result<Outcome, Failure>) -> Result<Outcome, Failure> {
        match (ended, self.rule.defer_delay()) {
            (Ok(Outcome::Defer), Some(delay)) => Ok(Outcome::DeferFor(delay)),
            (ended, _) => ended,
        }
    }
}

impl Handler<Raw> for Attempts {
    async fn handle(&self, context: Context, body: Raw) -> Result<Outcome, Failure> {
        #[cfg(feature = "otlp")]
        continue_sender(&Span::current(), &context.message().headers.properties);
        let _running = self.gauges.begin();
        let began = self.clock.elapsed();
        let ended = self.dispatch.handle(context, body).await;
        self.gauges.note_duration(&ended, self.clock.elapsed().saturating_sub(began));
        self.deferred(ended)
    }
}

impl Taker for Attempts {
    fn takes(&self, message: &ReceivedMessage) -> bool {
        self.dispatch.takes(message)
    }

    fn take(&self, assignments: Vec<Assignment>) {
        self.gauges.begin_many(assignments.len());
        #[cfg(feature = "otlp")]
        for assignment in &assignments {
            continue_sender(assignment.span(), &assignment.context().message().headers.properties);
        }
        self.dispatch.take(assignments);
    }

    fn ended(&self, result: Result<Outcome, Failure>, lasted: Option<Duration>) -> Result<Outcome, Failure> {
        self.gauges.end();
        if let Some(lasted) = lasted {
            self.gauges.note_duration(&result, lasted);
        }
        self.deferred(result)
    }

    fn is_waiting(&self, number: u64) -> bool {
        self.dispatch.is_waiting(number)
    }

    fn give_back(&self, number: u64) {
        self.dispatch.give_back(number);
    }

    fn cancel(&self, number: u64) {
        self.dispatch.cancel(number);
    }

    fn give_up(&self, number: u64) {
        self.dispatch.give_up(number);
    }

    fn give_up_all(&self) {
        self.dispatch.give_up_all();
    }
}
