//! What goes with the end of a delivery: what is sent with a completion, and how a failed one is tried again.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::engine::client::client::Client;
use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::Retry;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::command::StateChange;
use crate::engine::rules::output::Output;
use crate::error::Misuse;
use crate::error::SettleError;
use crate::header::Properties;
use crate::header::PropertyValue;
use crate::header::check_properties;
use crate::id::QueueName;
use crate::limits;
use crate::message::Message;

/// What happens in the same transaction as a completion: messages that are sent, and the workflow's new state.
///
/// ```
/// use seriatim::{Completion, Message};
///
/// let completion = Completion::new().state("shipped").send("invoices", Message::new("order-17"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Completion {
    state: StateChange,
    sends: Vec<(String, Message)>,
}

impl Completion {
    /// A completion and nothing else.
    pub fn new() -> Completion {
        Completion::default()
    }

    /// Sets the workflow's state, at most 1 MiB.
    #[must_use]
    pub fn state(mut self, state: impl Into<Bytes>) -> Completion {
        self.state = StateChange::Set(state.into());
        self
    }

    /// Clears the workflow's state.
    #[must_use]
    pub fn clear_state(mut self) -> Completion {
        self.state = StateChange::Clear;
        self
    }

    /// Sends a message to a queue of the same engine.
    #[must_use]
    pub fn send(mut self, queue: impl Into<String>, message: Message) -> Completion {
        self.sends.push((queue.into(), message));
        self
    }

    /// The queues it sends to, each once, in order.
    pub(crate) fn targets(&self) -> Vec<String> {
        let names: BTreeSet<&String> = self.sends.iter().map(|(queue, _)| queue).collect();
        names.into_iter().cloned().collect()
    }

    /// Whether nothing happens beside the completion.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.state, StateChange::Keep) && self.sends.is_empty()
    }

    /// The same with so many messages of a run.
    pub(crate) fn check_with(self, completed: usize) -> Result<CompletionCommand, Misuse> {
        if completed == 0 && !self.is_plain() {
            let field = if self.sends.is_empty() { "state" } else { "sends" };
            return Err(Misuse::new(field, "goes with a completion, and no message is completed"));
        }
        self.check()
    }

    pub(crate) fn check(self) -> Result<CompletionCommand, Misuse> {
        if let StateChange::Set(state) = &self.state {
            check_state(state)?;
        }
        if self.sends.len() > limits::SEND_BATCH_MAX {
            return Err(Misuse::new("sends", format!("are more than {}", limits::SEND_BATCH_MAX)));
        }
        let mut sends: Vec<(QueueName, Vec<_>)> = Vec::new();
        let mut bytes = 0;
        for (queue, message) in self.sends {
            let (queue, message) = (QueueName::new(queue)?, message.check()?);
            bytes += message.len();
            match sends.last_mut() {
                Some((last, messages)) if *last == queue => messages.push(message),
                _ => sends.push((queue, vec![message])),
            }
        }
        if bytes > limits::SEND_BATCH_BYTES_MAX {
            let problem = format!("have {bytes} bytes, at most {} are allowed", limits::SEND_BATCH_BYTES_MAX);
            return Err(Misuse::new("sends", problem));
        }
        Ok(CompletionCommand { state: self.state, sends })
    }
}

/// How a failed delivery is tried again: when, why, and with which properties.
#[derive(Clone, Debug)]
pub struct Abandon {
    retry: Retry,
    pub(crate) reason: String,
    properties: Properties,
    pub(crate) output: Output,
}

impl Retry {
    /// After the queue's backoff, with the chance that is drawn when the settlement is checked.
    const BACKOFF: Retry = Retry::Backoff(0);

    fn check(self, client: &Client) -> Result<Retry, SettleError> {
        Ok(match self {
            Retry::Now | Retry::At(_) => self,
            Retry::After(delay) => Retry::After(delay.min(limits::DURATION_MAX)),
            Retry::Backoff(_) => Retry::Backoff(client.entropy()?),
        })
    }
}

impl Abandon {
    fn retry(retry: Retry) -> Abandon {
        Abandon { retry, reason: String::new(), properties: Properties::new(), output: Output::default() }
    }

    /// The same after another delay.
    pub(crate) fn retry_after(self, delay: Duration) -> Abandon {
        Abandon { retry: Retry::After(delay), ..self }
    }

    /// The same at another instant.
    pub(crate) fn retry_at(self, instant: Timestamp) -> Abandon {
        Abandon { retry: Retry::At(instant), ..self }
    }

    /// When it is tried again, and nothing else of it.
    pub(crate) fn plain(&self) -> Abandon {
        Abandon::retry(self.retry)
    }

    /// Whether it leaves to others when the message is tried again.
    pub(crate) fn is_with_backoff(&self) -> bool {
        matches!(self.retry, Retry::Backoff(_))
    }

    /// Try again at once.
    pub fn now() -> Abandon {
        Abandon::retry(Retry::Now)
    }

    /// Try again after a delay. Nothing behind it in its workflow is handed out before it is settled.
    pub fn after(delay: Duration) -> Abandon {
        Abandon::retry(Retry::After(delay))
    }

    /// Try again at an instant.
    pub fn at(instant: Timestamp) -> Abandon {
        Abandon::retry(Retry::At(instant))
    }

    /// Try again after the queue's backoff, which grows with the delivery count.
    pub fn with_backoff() -> Abandon {
        Abandon::retry(Retry::BACKOFF)
    }

    /// Says why it failed; kept with the message's attempts.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Abandon {
        self.reason = reason.into();
        self
    }

    /// Keeps what was written during the attempt with it, at most 4 KiB, of all attempts of a message together 8 KiB.
    #[must_use]
    pub fn output(mut self, output: Output) -> Abandon {
        self.output = output;
        self
    }

    /// Sets a property of the message.
    #[must_use]
    pub fn property(mut self, name: impl Into<String>, value: impl Into<PropertyValue>) -> Abandon {
        self.properties.insert(name.into(), value.into());
        self
    }

    pub(crate) fn check(self, client: &Client) -> Result<Settlement, SettleError> {
        check_properties(&self.properties)?;
        let retry = self.retry.check(client)?;
        let reason = shortened(self.reason, limits::REASON_BYTES_MAX);
        Ok(Settlement::Abandon { retry, reason, properties: self.properties, output: bounded(self.output) })
    }

    /// The same of several messages that were handled together, when nobody knows which of them failed.
    pub(crate) fn check_shared(self, client: &Client) -> Result<Settlement, SettleError> {
        if !self.properties.is_empty() {
            return Err(Misuse::new("properties", "cannot be set for several messages at once").into());
        }
        let retry = self.retry.check(client)?;
        let reason = shortened(self.reason, limits::REASON_BYTES_MAX);
        Ok(Settlement::Suspect { retry, reason, output: bounded(self.output) })
    }
}

/// A message that was handled and cannot be completed for lack of room: tried again after the queue's backoff, uncounted.
pub(crate) fn postponed(client: &Client, reason: String) -> Result<Settlement, SettleError> {
    let retry = Retry::BACKOFF.check(client)?;
    Ok(Settlement::Postpone { retry, reason: shortened(reason, limits::REASON_BYTES_MAX) })
}

pub(crate) fn check_state(state: &Bytes) -> Result<(), Misuse> {
    match state.len() {
        length if length > limits::STATE_BYTES_MAX => {
            let problem = format!("has {length} bytes, at most {} are allowed", limits::STATE_BYTES_MAX);
            Err(Misuse::new("state", problem))
        }
        _ => Ok(()),
    }
}

/// An output within the limit, whoever made it.
fn bounded(output: Output) -> Output {
    let Output { text, cut_bytes } = Output::end_of(output.text);
    Output { text, cut_bytes: cut_bytes.saturating_add(output.cut_bytes) }
}

pub(crate) fn shortened(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        let end = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
    text
}
