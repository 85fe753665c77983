//! One handler for each subject.

use std::collections::BTreeMap;

use crate::engine::Received;
use crate::handlers::exec::Exec;
use crate::handlers::forward::Forward;
use crate::handlers::persistent::Persistent;
use crate::handlers::webhook::Webhook;
use crate::processor::Assignment;
use crate::processor::Context;
use crate::processor::Failure;
use crate::processor::Handler;
use crate::processor::Outcome;
use crate::processor::Raw;
use crate::processor::Taker;

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

/// Chooses a handler by the message's subject.
#[derive(Default)]
pub(crate) struct Dispatch {
    handlers: Vec<AnyHandler>,
    /// Which of them.
    by_subject: BTreeMap<String, usize>,
    otherwise: Option<usize>,
}

impl Dispatch {
    /// Adds the handler of a subject; without one, of every other message. The last one given counts.
    #[must_use]
    pub(crate) fn with(mut self, subject: Option<String>, handler: AnyHandler) -> Dispatch {
        let index = self.handlers.len();
        self.handlers.push(handler);
        match subject {
            Some(subject) => drop(self.by_subject.insert(subject, index)),
            None => self.otherwise = Some(index),
        }
        self
    }

    /// Takes no more messages, and gives back those that wait for a program; what is begun goes on.
    pub(crate) fn turn_away(&self) {
        self.takers().for_each(Persistent::turn_away);
    }

    /// Ends whatever runs on between messages. To be called when no message is being handled any more.
    pub(crate) async fn close(&self) {
        for persistent in self.takers() {
            persistent.close().await;
        }
    }

    fn takers(&self) -> impl Iterator<Item = &Persistent> {
        self.handlers.iter().filter_map(AnyHandler::taker)
    }

    fn choose(&self, message: &Received) -> Option<usize> {
        let subject = message.headers.subject.as_deref();
        let chosen = subject.and_then(|subject| self.by_subject.get(subject).copied());
        chosen.or(self.otherwise)
    }
}

impl AnyHandler {
    fn taker(&self) -> Option<&Persistent> {
        match self {
            AnyHandler::Persistent(persistent) => Some(persistent),
            AnyHandler::Exec(_) | AnyHandler::Webhook(_) | AnyHandler::Forward(_) => None,
        }
    }
}

impl Handler<Raw> for Dispatch {
    async fn handle(&self, context: Context, body: Raw) -> Result<Outcome, Failure> {
        let Some(chosen) = self.choose(context.message()) else {
            return Err(match &context.message().headers.subject {
                Some(subject) => Failure::new(format!("no handler for subject {subject:?}")),
                None => Failure::new("no handler for a message without a subject"),
            });
        };
        match &self.handlers[chosen] {
            AnyHandler::Exec(exec) => exec.handle(context, body).await,
            AnyHandler::Webhook(webhook) => webhook.handle(context, body).await,
            AnyHandler::Forward(forward) => forward.handle(context, body).await,
            AnyHandler::Persistent(_) => unreachable!("what a program that runs on can handle is taken"),
        }
    }
}

impl Taker for Dispatch {
    fn takes(&self, message: &Received) -> bool {
        self.choose(message).is_some_and(|chosen| self.handlers[chosen].taker().is_some())
    }

    fn take(&self, assignments: Vec<Assignment>) {
        let mut shares: BTreeMap<usize, Vec<Assignment>> = BTreeMap::new();
        for assignment in assignments {
            let chosen = self.choose(assignment.context().message());
            let chosen = chosen.expect("what is taken has a handler");
            shares.entry(chosen).or_default().push(assignment);
        }
        for (chosen, share) in shares {
            let taker = self.handlers[chosen].taker().expect("only what is taken is given");
            taker.take(share);
        }
    }

    fn cancel(&self, number: u64) {
        self.takers().for_each(|taker| taker.cancel(number));
    }

    fn give_up(&self, number: u64) {
        self.takers().for_each(|taker| taker.give_up(number));
    }

    fn give_up_all(&self) {
        self.takers().for_each(Taker::give_up_all);
    }
}
