//! One handler for each subject.

use std::collections::BTreeMap;

use crate::handlers::exec::Exec;
use crate::handlers::forward::Forward;
use crate::handlers::persistent::Persistent;
use crate::handlers::webhook::Webhook;
use crate::processor::Context;
use crate::processor::Failure;
use crate::processor::Handler;
use crate::processor::Outcome;
use crate::processor::Raw;

/// Any of the ready-made handlers.
pub(crate) enum AnyHandler {
    /// A program that is run once a message.
    Exec(Exec),
    /// Programs that run on.
    Persistent(Persistent),
    /// An address.
    Webhook(Webhook),
    /// Another queue.
    Forward(Forward),
}

impl Handler<Raw> for AnyHandler {
    async fn handle(&self, context: Context, body: Raw) -> Result<Outcome, Failure> {
        // In boxes, so that the quick one has not to carry the room that the others need.
        match self {
            AnyHandler::Exec(exec) => Box::pin(exec.handle(context, body)).await,
            AnyHandler::Persistent(persistent) => persistent.handle(context, body).await,
            AnyHandler::Webhook(webhook) => Box::pin(webhook.handle(context, body)).await,
            AnyHandler::Forward(forward) => Box::pin(forward.handle(context, body)).await,
        }
    }
}

/// Chooses a handler by the message's subject.
#[derive(Default)]
pub(crate) struct Dispatch {
    by_subject: BTreeMap<String, AnyHandler>,
    otherwise: Option<AnyHandler>,
}

impl Dispatch {
    /// Adds the handler of a subject; without one, of every other message. The last one given counts.
    #[must_use]
    pub(crate) fn with(mut self, subject: Option<String>, handler: AnyHandler) -> Dispatch {
        match subject {
            Some(subject) => drop(self.by_subject.insert(subject, handler)),
            None => self.otherwise = Some(handler),
        }
        self
    }

    /// Takes no more messages, and gives back those that wait for a program; what is begun goes on.
    pub(crate) fn turn_away(&self) {
        for handler in self.by_subject.values().chain(&self.otherwise) {
            if let AnyHandler::Persistent(persistent) = handler {
                persistent.turn_away();
            }
        }
    }

    /// Ends whatever runs on between messages. To be called when no message is being handled any more.
    pub(crate) async fn close(&self) {
        for handler in self.by_subject.values().chain(&self.otherwise) {
            if let AnyHandler::Persistent(persistent) = handler {
                persistent.close().await;
            }
        }
    }
}

impl Handler<Raw> for Dispatch {
    async fn handle(&self, context: Context, body: Raw) -> Result<Outcome, Failure> {
        let subject = context.message().headers.subject.as_deref();
        let chosen = subject.and_then(|subject| self.by_subject.get(subject)).or(self.otherwise.as_ref());
        match (chosen, subject) {
            (Some(handler), _) => handler.handle(context, body).await,
            (None, Some(subject)) => Err(Failure::new(format!("no handler for subject {subject:?}"))),
            (None, None) => Err(Failure::new("no handler for a message without a subject")),
        }
    }
}
