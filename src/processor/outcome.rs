//! What a handler says in the end.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::Completion;
use crate::engine::Output;
use crate::engine::Retry;

/// How a handler ended that did not fail.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Outcome {
    /// The message is done.
    #[default]
    Complete,
    /// The message is done; messages to send and the new workflow state are one transaction with it.
    CompleteWith(Completion),
    /// Try it again after the queue's backoff. Nothing behind it in its workflow is handled before.
    Retry,
    /// Try it again after a delay.
    RetryAfter(Duration),
    /// Try it again at an instant.
    RetryAt(Timestamp),
    /// Set it aside until it is fetched by number; the workflow goes on without it.
    Defer,
    /// Set it aside for this long, by a clock that does not jump.
    DeferFor(Duration),
    /// Set it aside until an instant.
    DeferUntil(Timestamp),
    /// Move it aside for good.
    DeadLetter {
        /// A short reason, by which dead letters are listed.
        reason: String,
        /// What else there is to say.
        description: String,
    },
}

impl Outcome {
    /// The queues that its completion sends to.
    pub(crate) fn targets(&self) -> Vec<String> {
        match self {
            Outcome::CompleteWith(completion) => completion.targets(),
            _ => Vec::new(),
        }
    }

    /// Whether the message is done, and nothing else is said.
    pub(crate) fn is_only_done(&self) -> bool {
        match self {
            Outcome::Complete => true,
            Outcome::CompleteWith(completion) => completion.is_plain(),
            _ => false,
        }
    }
}

/// Why a handler failed, and when it is tried again.
///
/// Any error that can be displayed becomes one, so that `?` works in a handler; its text is kept with the message's
/// attempts. Unless it says otherwise, the message is tried again after the queue's backoff.
#[derive(Clone, Debug)]
pub struct Failure {
    pub(crate) reason: String,
    /// When it is tried again; unless it is chosen, after the delay that is usual for the queue.
    pub(crate) retry: Option<Retry>,
    /// Whether nothing was begun: no failure, so it is given back uncounted.
    pub(crate) is_unbegun: bool,
    /// What the handler wrote.
    pub(crate) output: Option<Box<Output>>,
    /// Whether the message failed with others, any of which may be to blame.
    pub(crate) is_shared: bool,
}

impl Failure {
    /// A failure with a reason, tried again after the queue's backoff.
    pub fn new(reason: impl Into<String>) -> Failure {
        Failure { reason: reason.into(), retry: None, is_unbegun: false, output: None, is_shared: false }
    }

    /// What is no failure: nothing of the message was begun, so it is given back as if it had not been handed out.
    #[cfg(feature = "daemon")]
    pub(crate) fn unbegun(reason: impl Into<String>) -> Failure {
        Failure { is_unbegun: true, ..Failure::new(reason) }
    }

    /// A failure of several messages at once, any of which may be to blame: each is tried again at once, alone.
    #[cfg(feature = "daemon")]
    pub(crate) fn shared(reason: impl Into<String>) -> Failure {
        Failure { is_shared: true, ..Failure::new(reason).retry_after(Duration::ZERO) }
    }

    /// Chooses the delay for this failure, as from a `Retry-After`.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Failure {
        self.retry = Some(Retry::After(delay));
        self
    }

    /// Chooses the delay for this failure, unless it has chosen one itself.
    #[must_use]
    pub fn or_retry_after(self, delay: Duration) -> Failure {
        Failure { retry: self.retry.or(Some(Retry::After(delay))), ..self }
    }

    /// Chooses the instant of the next attempt.
    #[must_use]
    pub fn retry_at(mut self, at: Timestamp) -> Failure {
        self.retry = Some(Retry::At(at));
        self
    }

    /// Keeps what was written with the attempt, for whoever looks for the cause: at most 4 KiB.
    #[must_use]
    pub fn output(mut self, output: Output) -> Failure {
        self.output = (!output.is_empty()).then(|| Box::new(output));
        self
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
        &self.reason
    }
}

impl<E: fmt::Display> From<E> for Failure {
    fn from(error: E) -> Failure {
        let (reason, whole) = (error.to_string(), format!("{error:#}"));
        // Errors that carry their causes, as those of anyhow and eyre, tell them so.
        let output = if whole == reason { Output::default() } else { Output::start_of(whole) };
        Failure::new(reason).output(output)
    }
}
