//! Handlers that take many messages at once, and need no task for each.

use std::time::Duration;

use tracing::Span;

use crate::engine::Outcome;
use crate::engine::ReceivedMessage;
use crate::processor::context::Context;
use crate::processor::failure::Failure;

/// A handler that takes messages, many at once, and says later how the attempt at each has ended.
pub(crate) trait Taker: Send + Sync + 'static {
    /// Whether it takes a message; one that it does not take is handled by itself.
    fn takes(&self, message: &ReceivedMessage) -> bool;

    /// Takes messages, each of another workflow.
    fn take(&self, assignments: Vec<Assignment>);

    /// Hears how an attempt has ended, and how long it lasted if it was begun, and may say otherwise. A panic is a failure.
    fn ended(&self, result: Result<Outcome, Failure>, lasted: Option<Duration>) -> Result<Outcome, Failure> {
        let _ = lasted;
        result
    }

    /// Whether an assignment waits for who is to begin it.
    fn is_waiting(&self, number: u64) -> bool;

    /// Gives an assignment back uncounted, if it still waits.
    fn give_back(&self, number: u64);

    /// The lock of an assignment is lost: it is to come to its end soon. One that has ended is nobody's concern.
    fn cancel(&self, number: u64);

    /// An assignment whose lock is lost has had the time to end by itself, and is to be ended now.
    fn give_up(&self, number: u64);

    /// All assignments are to be ended now.
    fn give_up_all(&self);
}

/// A message that a [`Taker`] has taken.
///
/// # Dropping
/// An assignment that is dropped has failed.
pub(crate) struct Assignment {
    number: u64,
    context: Context,
    span: Span,
    reply: Option<AssignmentReply>,
}

/// Who is notified how an assignment ended, and how long its attempt lasted if it was begun.
type AssignmentReply = Box<dyn FnOnce(Result<Outcome, Failure>, Option<Duration>) + Send>;

impl Drop for Assignment {
    fn drop(&mut self) {
        if self.reply.is_some() {
            self.reply(Err(Failure::new("its handler let go of it")), None);
        }
    }
}

#[cfg_attr(
    not(any(feature = "daemon", test)),
    expect(dead_code, reason = "only handlers of the daemon take messages")
)]
impl Assignment {
    /// Where its span is made: no log need show it, because nothing is logged inside.
    pub(crate) const SPAN_TARGET: &str = "seriatim::assignment";

    /// An assignment with its number; `reply` gets how it ended, and how long its attempt lasted if it was begun.
    pub(crate) fn new(
        number: u64,
        context: Context,
        reply: impl FnOnce(Result<Outcome, Failure>, Option<Duration>) + Send + 'static,
    ) -> Assignment {
        let message = context.message();
        let span = tracing::info_span!(
            target: Assignment::SPAN_TARGET,
            "handle",
            queue = %context.queue().name(),
            workflow = message.workflow_id.as_ref().map(tracing::field::display),
            sequence = %message.sequence_number,
            attempt = context.attempt()
        );
        Assignment { number, context, span, reply: Some(Box::new(reply)) }
    }

    /// Its number, which no other of the same processor has.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// What a handler knows of its message.
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// The span it is handled in.
    #[cfg_attr(
        all(test, not(feature = "daemon")),
        expect(dead_code, reason = "only handlers of the daemon do something inside")
    )]
    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// Says how it ended that was not begun.
    pub(crate) fn end(self, result: Result<Outcome, Failure>) {
        self.end_after(result, None);
    }

    /// Says how it ended, and how long its attempt lasted if it was begun.
    pub(crate) fn end_after(mut self, result: Result<Outcome, Failure>, lasted: Option<Duration>) {
        self.reply(result, lasted);
    }

    fn reply(&mut self, result: Result<Outcome, Failure>, lasted: Option<Duration>) {
        if let Some(reply) = self.reply.take() {
            reply(result, lasted);
        }
    }
}
