//! How a delivery ends, as whoever handles it says.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::client::client::Client;
use crate::engine::client::settling::Abandon;
use crate::engine::client::settling::Completion;
use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::due::DeferralEnd;
use crate::error::Misuse;
use crate::error::SettleError;
use crate::header::Properties;
use crate::limits;

/// How a delivery ends: what a handler answers, and what a settlement says.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Outcome {
    /// The message is done.
    #[default]
    Complete,
    /// The message is done; messages to send and the new workflow state are one transaction with it.
    CompleteWith(Completion),
    /// It failed and is tried again. Nothing behind it in its workflow is handled before.
    Abandon(Abandon),
    /// It is set aside until it is fetched by number; the workflow goes on without it.
    Defer,
    /// It is set aside for this long, by a clock that does not jump.
    DeferFor(Duration),
    /// It is set aside until an instant.
    DeferUntil(Timestamp),
    /// It is moved aside for good.
    DeadLetter {
        /// A short reason, by which dead letters are listed.
        reason: String,
        /// What else there is to say.
        description: String,
    },
    /// It was not started: it goes back as if it had not been handed out, and is handed out again at once.
    Release,
}

impl Outcome {
    /// Sets it aside until an instant; where none is given, for the delay that is usual there.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only definitions say a usual delay"))]
    pub(crate) fn defer(until: Option<Timestamp>, usual: Option<Duration>) -> Outcome {
        match (until, usual) {
            (Some(until), _) => Outcome::DeferUntil(until),
            (None, Some(delay)) => Outcome::DeferFor(delay),
            (None, None) => Outcome::Defer,
        }
    }

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

    pub(crate) fn check(self, client: &Client) -> Result<Settlement, SettleError> {
        match self {
            Outcome::Complete => Ok(Settlement::Complete(CompletionCommand::default())),
            Outcome::CompleteWith(completion) => Ok(Settlement::Complete(completion.check()?)),
            Outcome::Abandon(abandon) => abandon.check(client),
            Outcome::Defer => Ok(deferral(DeferralEnd::ByConsumer)),
            Outcome::DeferFor(delay) => Ok(deferral(DeferralEnd::After(delay))),
            Outcome::DeferUntil(until) => Ok(deferral(DeferralEnd::At(until))),
            Outcome::DeadLetter { reason, description } => dead_letter(reason, description),
            Outcome::Release => Ok(Settlement::Release),
        }
    }

    /// The same of the message behind those that are completed in a run.
    pub(crate) fn check_next(self, client: &Client) -> Result<Settlement, SettleError> {
        match self {
            Outcome::Complete | Outcome::CompleteWith(_) => {
                Err(Misuse::new("next", "is completed, so it is counted with those before it").into())
            }
            outcome => outcome.check(client),
        }
    }

    /// The same, with properties of the message that it sets.
    pub(crate) fn check_with(self, client: &Client, changed: Properties) -> Result<Settlement, SettleError> {
        let mut settlement = self.check(client)?;
        if let Settlement::Abandon { properties, .. }
        | Settlement::Defer { properties, .. }
        | Settlement::DeadLetter { properties, .. } = &mut settlement
        {
            properties.extend(changed);
        }
        Ok(settlement)
    }
}

fn dead_letter(reason: String, description: String) -> Result<Settlement, SettleError> {
    if reason.is_empty() {
        return Err(Misuse::new("reason", "is empty").into());
    }
    Ok(Settlement::DeadLetter {
        reason: with_characters(reason, limits::DEAD_LETTER_TEXT_CHARACTERS_MAX),
        description: with_characters(description, limits::DEAD_LETTER_TEXT_CHARACTERS_MAX),
        properties: Properties::new(),
    })
}

fn deferral(until: DeferralEnd) -> Settlement {
    Settlement::Defer { until, properties: Properties::new() }
}

/// Cuts a text at a character's end: an error text of a handler may be of any length, and is no reason to refuse.
fn with_characters(mut text: String, max: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(max) {
        text.truncate(end);
    }
    text
}
