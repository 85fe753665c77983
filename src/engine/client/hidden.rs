//! Messages handed out without a lock: hidden for a while, and claimed by whoever was handed them last.

use std::time::Duration;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::engine::client::client::Client;
use crate::engine::client::queue::Queue;
use crate::engine::client::queue::check_max;
use crate::engine::query::Query;
use crate::engine::rules::claim::Claim;
use crate::engine::rules::command::UnlockedMessage;
use crate::engine::rules::record::Status;
use crate::engine::rules::verbs::EndHidden;
use crate::engine::rules::verbs::HideAgain;
use crate::engine::rules::verbs::ReceiveHidden;
use crate::engine::view::MessageView;
use crate::error::QueueError;
use crate::error::ReceiveError;
use crate::error::SettleError;
use crate::header::Headers;

/// A message that was handed out without a lock: hidden from others for a while, and offered again afterwards.
///
/// # Dropping
/// Nothing happens: it is offered again at its instant.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Hidden {
    /// What ends it or hides it anew; void once it was handed out again.
    pub claim: Claim,
    /// Until when it is hidden.
    pub until: Timestamp,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// Its headers.
    pub headers: Headers,
    /// Its body.
    pub body: Bytes,
}

impl Hidden {
    fn new(client: &Client, shown: UnlockedMessage) -> Hidden {
        let claim = shown.claim();
        let UnlockedMessage { record, content, .. } = shown;
        let until = match record.status {
            Status::ByConsumer { due: Some(due), .. } => client.shown_due(due),
            _ => client.shown(record.handed_out_at),
        };
        Hidden {
            claim,
            until,
            accepted_at: record.accepted_at,
            expires_at: record.rare.expires_at.map(|due| client.shown_due(due)),
            headers: content.headers.into_inner(),
            body: content.body,
        }
    }
}

impl Queue {
    /// Receives up to `max` messages of different workflows that are ready now, without a lock: each is hidden for
    /// `lasts`, at least a second, and then offered again, at its place among those of its workflow. Its claim stays
    /// good until it is handed out again, and over a restart.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), seriatim::Error> {
    /// use std::time::Duration;
    /// use seriatim::{Engine, Message, QueueOptions};
    ///
    /// let engine = Engine::in_memory().open().await?;
    /// let queue = engine.client().create_queue("q", QueueOptions::default()).await?;
    /// queue.send(Message::new("step 1")).await?;
    ///
    /// let minute = Duration::from_secs(60);
    /// let hidden = queue.receive_hidden(1, minute).await?.remove(0);
    /// let renewed = queue.hide_again(hidden.claim, minute, Some("step 2".into())).await?;
    /// assert!(queue.end_hidden(hidden.claim).await.is_err(), "the first claim is void");
    /// queue.end_hidden(renewed.claim).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// If the future is dropped, what it was handed stays hidden for `lasts`, and that hand-out counts.
    ///
    /// # Errors
    /// [`ReceiveRefusal::QueueNotFound`](crate::error::ReceiveRefusal::QueueNotFound).
    pub async fn receive_hidden(&self, max: usize, lasts: Duration) -> Result<Vec<Hidden>, ReceiveError> {
        check_max(max)?;
        let shown = self.client().ask(ReceiveHidden { queue: self.name().clone(), max, lasts }).await?;
        Ok(shown.into_iter().map(|shown| Hidden::new(self.client(), shown)).collect())
    }

    /// Hides a claimed message for `lasts` from now on, with a new claim and, if one is given, another body. Count and
    /// place stay. No time at all offers it at once.
    ///
    /// # Errors
    /// [`SettleRefusal::LockLost`](crate::error::SettleRefusal::LockLost) when the claim is not the last;
    /// [`SettleRefusal::MessageNotFound`](crate::error::SettleRefusal::MessageNotFound) when the message is gone;
    /// [`SettleRefusal::Send`](crate::error::SettleRefusal::Send) when the body is too large.
    pub async fn hide_again(
        &self,
        claim: Claim,
        lasts: Duration,
        body: Option<Bytes>,
    ) -> Result<Hidden, SettleError> {
        let queue = self.name().clone();
        let shown = self.client().ask(HideAgain { queue, claim, lasts, body }).await?;
        Ok(Hidden::new(self.client(), *shown))
    }

    /// Completes a claimed message; one that nobody was handed is cancelled.
    ///
    /// # Errors
    /// As [`Queue::hide_again`].
    pub async fn end_hidden(&self, claim: Claim) -> Result<(), SettleError> {
        self.client().ask(EndHidden { queue: self.name().clone(), claim }).await
    }

    /// Up to `limit` of the messages that would be handed out next, in that order. Looking changes nothing.
    /// At most 1,000 are returned, whatever the limit, and no more once their bodies have 16 MiB.
    ///
    /// # Errors
    /// As [`Queue::view`].
    pub async fn peek_offered(&self, limit: usize) -> Result<Vec<MessageView>, QueueError> {
        let queue = self.name().clone();
        self.client().look(self.name(), |slot| Query::Offered { queue, limit, slot }).await
    }
}
