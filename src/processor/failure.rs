//! Why a handler failed.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::Abandon;
use crate::engine::Output;

/// Why a handler failed, and when it is tried again.
///
/// Any error that can be displayed becomes one, so that `?` works in a handler; its text is kept with the message's
/// attempts. Unless it says otherwise, the message is tried again after the queue's backoff.
#[derive(Clone, Debug)]
pub struct Failure {
    /// When it is tried again, why it failed, and what the handler wrote; in a box, because what handlers return is moved several
    /// times, and hardly any of it is a failure.
    pub(crate) abandon: Box<Abandon>,
    /// Whether nothing was begun: no failure, so it is given back uncounted.
    pub(crate) is_unbegun: bool,
    /// Whether the message failed with others, any of which may be to blame.
    pub(crate) is_shared: bool,
    /// Whether whoever it goes to has no room for it now, so that it is tried again uncounted.
    pub(crate) is_postponed: bool,
}

impl Failure {
    /// A failure with a reason, tried again after the queue's backoff.
    pub fn new(reason: impl Into<String>) -> Failure {
        Failure::of(Abandon::with_backoff().reason(reason))
    }

    /// The failure of a delivery that ends so.
    pub(crate) fn of(abandon: Abandon) -> Failure {
        Failure { abandon: Box::new(abandon), is_unbegun: false, is_shared: false, is_postponed: false }
    }

    /// What is no failure: nothing of the message was begun, so it is given back as if it had not been handed out.
    #[cfg(feature = "daemon")]
    pub(crate) fn unbegun(reason: impl Into<String>) -> Failure {
        Failure { is_unbegun: true, ..Failure::new(reason) }
    }

    /// What neither the message nor its handler is to blame for: whoever it goes to has no room for it now. It is tried again after
    /// the queue's backoff, and the attempt is not counted.
    #[cfg(feature = "daemon")]
    pub(crate) fn postponed(reason: impl Into<String>) -> Failure {
        Failure { is_postponed: true, ..Failure::new(reason) }
    }

    /// A failure of several messages at once, any of which may be to blame: each is tried again at once, alone.
    #[cfg(feature = "daemon")]
    pub(crate) fn shared(reason: impl Into<String>) -> Failure {
        Failure { is_shared: true, ..Failure::new(reason).retry_after(Duration::ZERO) }
    }

    /// Chooses the delay for this failure, as from a `Retry-After`.
    #[must_use]
    pub fn retry_after(self, delay: Duration) -> Failure {
        self.with(|abandon| abandon.retry_after(delay))
    }

    /// Chooses the delay for this failure, unless it has chosen one itself.
    #[must_use]
    pub fn or_retry_after(self, delay: Duration) -> Failure {
        if self.abandon.is_with_backoff() { self.retry_after(delay) } else { self }
    }

    /// Chooses the instant of the next attempt.
    #[must_use]
    pub fn retry_at(self, at: Timestamp) -> Failure {
        self.with(|abandon| abandon.retry_at(at))
    }

    /// Keeps what was written with the attempt, for whoever looks for the cause: at most 4 KiB.
    #[must_use]
    pub fn output(self, output: Output) -> Failure {
        self.with(|abandon| abandon.output(output))
    }

    fn with(self, change: impl FnOnce(Abandon) -> Abandon) -> Failure {
        Failure { abandon: Box::new(change(*self.abandon)), ..self }
    }

    /// A failure with an error's text as its reason, and the texts of its causes kept with the attempt, a line each.
    pub fn caused_by(error: &dyn Error) -> Failure {
        let (mut texts, mut cause) = (error.to_string(), error.source());
        while let Some(error) = cause {
            texts.push_str(&format!("\n{error}"));
            cause = error.source();
        }
        let failure = Failure::new(error.to_string());
        if error.source().is_some() { failure.output(Output::start_of(texts)) } else { failure }
    }

    /// Why.
    pub fn reason(&self) -> &str {
        &self.abandon.reason
    }
}

impl<E: fmt::Display> From<E> for Failure {
    fn from(error: E) -> Failure {
        let (reason, whole) = (error.to_string(), format!("{error:#}"));
        // Errors that carry their causes, as those of anyhow and eyre, show them so.
        let output = if whole == reason { Output::default() } else { Output::start_of(whole) };
        Failure::new(reason).output(output)
    }
}
