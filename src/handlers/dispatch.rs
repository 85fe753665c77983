//! One handler for each subject.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;

use crate::clock::Timestamp;
use crate::engine::ReceivedMessage;
use crate::handlers::exec::Exec;
use crate::handlers::forward::Forward;
use crate::handlers::persistent::Persistent;
use crate::handlers::webhook::Webhook;
use crate::mutex::Mutex;
use crate::processor::Assignment;
use crate::processor::Context;
use crate::processor::Failure;
use crate::processor::Gate;
use crate::processor::Handler;
use crate::processor::Outcome;
use crate::processor::Raw;
use crate::processor::Taker;
use crate::rate::Bucket;
use crate::rate::Rate;

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
    /// Those that have a rate.
    paced: Vec<RatedHandler>,
}

/// A handler that has a rate.
struct RatedHandler {
    handler: usize,
    rate: Rate,
    bucket: Mutex<Bucket>,
}

/// Why nothing is handed out to the handlers of a definition, until when in the clock's elapsed time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DispatchPause {
    /// The rate of one of them is used up.
    ByRate { until: Duration },
    /// The daemon cannot start a program for lack of something.
    ByShortage { until: Duration, why: String },
}

impl DispatchPause {
    /// Until when.
    pub(crate) fn until(&self) -> Duration {
        match self {
            DispatchPause::ByRate { until } | DispatchPause::ByShortage { until, .. } => *until,
        }
    }
}

/// The clock's elapsed time as an instant, for buckets.
fn at(elapsed: Duration) -> Timestamp {
    Timestamp::default() + elapsed
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

    /// Gives the handler that was added last a rate, from now on.
    #[must_use]
    pub(crate) fn paced(mut self, rate: Rate, elapsed: Duration) -> Dispatch {
        let handler = self.handlers.len().checked_sub(1).expect("a handler was added before");
        self.paced.push(RatedHandler { handler, rate, bucket: Mutex::new(Bucket::full(rate, at(elapsed))) });
        self
    }

    /// Why nothing is handed out right now; of several reasons the one that lasts longest.
    pub(crate) fn held_back(&self, elapsed: Duration) -> Option<DispatchPause> {
        let by_rate = self.paced.iter().filter_map(|paced| {
            let mut bucket = *paced.bucket.lock();
            bucket.advance(paced.rate, at(elapsed));
            let until = bucket.next_at().since(Timestamp::default());
            (bucket.messages() == 0).then_some(DispatchPause::ByRate { until })
        });
        let by_shortage = self.handlers.iter().filter_map(|handler| {
            let (until, why) = match handler {
                AnyHandler::Exec(exec) => exec.shortage().pauses_until(elapsed)?,
                AnyHandler::Persistent(persistent) => persistent.cannot_start_until()?,
                AnyHandler::Webhook(_) | AnyHandler::Forward(_) => return None,
            };
            Some(DispatchPause::ByShortage { until, why })
        });
        by_rate.chain(by_shortage).max_by_key(DispatchPause::until)
    }

    /// Takes no more messages, and gives back those that wait for a program; what is begun goes on.
    pub(crate) fn turn_away(&self) {
        self.takers().for_each(Persistent::turn_away);
    }

    /// Ends whatever runs on between messages, all at the same time: each may take its grace. To be called when no message is being
    /// handled any more.
    pub(crate) async fn close(&self) {
        join_all(self.takers().map(Persistent::close)).await;
    }

    fn takers(&self) -> impl Iterator<Item = &Persistent> {
        self.handlers.iter().filter_map(AnyHandler::taker)
    }

    fn choose(&self, message: &ReceivedMessage) -> Option<usize> {
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

impl Gate for Dispatch {
    fn open(&self, elapsed: Duration) -> Result<usize, Duration> {
        if let Some(held_back) = self.held_back(elapsed) {
            return Err(held_back.until().saturating_sub(elapsed));
        }
        // Whose message it will be is not known beforehand, so that any of them has to have room for all.
        let room = self.paced.iter().map(|paced| {
            let mut bucket = paced.bucket.lock();
            bucket.advance(paced.rate, at(elapsed));
            bucket.messages()
        });
        Ok(room.min().unwrap_or(usize::MAX))
    }

    fn note(&self, message: &ReceivedMessage) {
        let chosen = self.choose(message);
        if let Some(paced) = self.paced.iter().find(|paced| Some(paced.handler) == chosen) {
            paced.bucket.lock().take();
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
    fn takes(&self, message: &ReceivedMessage) -> bool {
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

    fn is_waiting(&self, number: u64) -> bool {
        self.takers().any(|taker| taker.is_waiting(number))
    }

    fn give_back(&self, number: u64) {
        self.takers().for_each(|taker| taker.give_back(number));
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
