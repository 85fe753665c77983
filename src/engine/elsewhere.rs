//! A client whose engine is elsewhere: what is asked through it is taken by whoever knows who is to do it, and the engines that do
//! it are asked for commands of any kind. What is needed for that is named here, and nothing else of the engine.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;

use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::engine::client::client::Client;
use crate::engine::clocks::ClockReading;
use crate::engine::clocks::Clocks;
use crate::engine::clocks::SharedClocks;
pub(crate) use crate::engine::inbox::Inbox;
use crate::engine::inbox::InboxReceiver;
pub(crate) use crate::engine::inbox::Request;
use crate::engine::inbox::inbox;
pub(crate) use crate::engine::letter::LetterHandle;
use crate::engine::letter::WorkWait;
#[cfg(test)]
pub(crate) use crate::engine::look_samples::found;
#[cfg(test)]
pub(crate) use crate::engine::look_samples::looks_for;
pub(crate) use crate::engine::looks::LookFor;
pub(crate) use crate::engine::looks::LookResult;
pub(crate) use crate::engine::looks::LookResultSlot;
pub(crate) use crate::engine::looks::LookScope;
pub(crate) use crate::engine::looks::split_query;
use crate::engine::meter::CommitMeter;
pub(crate) use crate::engine::rules::command::CompletionCommand;
pub(crate) use crate::engine::rules::command::HandoverAnswer;
pub(crate) use crate::engine::rules::command::HandoverSource;
pub(crate) use crate::engine::rules::command::LockedMessage;
pub(crate) use crate::engine::rules::command::PurgeFrom;
pub(crate) use crate::engine::rules::command::PurgeScope;
pub(crate) use crate::engine::rules::command::Settlement;
pub(crate) use crate::engine::rules::command::UnlockedMessage;
#[cfg(test)]
pub(crate) use crate::engine::rules::command_samples::commands;
pub(crate) use crate::engine::rules::due::Due;
use crate::engine::rules::effect::Event;
pub(crate) use crate::engine::rules::record::Counts;
pub(crate) use crate::engine::rules::record::MessageRecord;
pub(crate) use crate::engine::rules::record::Status;
pub(crate) use crate::engine::rules::reply::Reply;
#[cfg(test)]
pub(crate) use crate::engine::rules::reply_samples::replies;
pub(crate) use crate::engine::rules::topic_record::Fanout;
pub(crate) use crate::engine::rules::topic_record::SubscriptionPlan;
pub(crate) use crate::engine::rules::topic_record::TopicChange;
pub(crate) use crate::engine::rules::topic_record::TopicPlan;
pub(crate) use crate::engine::rules::topics::check_size;
pub(crate) use crate::engine::rules::transact::RefusedStep;
pub(crate) use crate::engine::rules::transact::StepCommand;
pub(crate) use crate::engine::rules::transact::StepRefusal;
pub(crate) use crate::engine::rules::verb::EngineVerb;
use crate::engine::rules::verb::HandOut;
pub(crate) use crate::engine::rules::verb::VerbOutcome;
use crate::engine::rules::verb::WorkVerb;
use crate::engine::rules::verb::surely;
pub(crate) use crate::engine::rules::verbs;
pub(crate) use crate::engine::rules::verbs::Command;
use crate::engine::rules::waits_for::WaitsFor;
use crate::engine::store::Stamp;
pub(crate) use crate::engine::store::codec::decode;
pub(crate) use crate::engine::store::codec::encode;
use crate::error::ReceiveRefusal;
use crate::error::Unavailable;
use crate::token::LockToken;

/// What is asked through a client whose engine is elsewhere.
pub(crate) struct Elsewhere {
    intake: InboxReceiver,
    inbox: Inbox,
    clock: Arc<dyn Clock>,
    clocks: Clocks,
}

/// Engine time as a client of an engine elsewhere counts it.
#[derive(Clone)]
pub(crate) struct EngineClock {
    clock: Arc<dyn Clock>,
    shared: Arc<SharedClocks>,
}

impl EngineClock {
    pub(crate) fn now(&self) -> Timestamp {
        self.shared.engine(self.elapsed())
    }

    /// What the wall clock shows.
    pub(crate) fn wall(&self) -> Timestamp {
        self.clock.now()
    }

    /// How long the clock has run.
    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }
}

impl Elsewhere {
    /// Makes a client, and what is asked through it.
    /// What happens to workflows elsewhere and is to be followed through it is sent to `events`.
    pub(crate) fn begin(clock: Arc<dyn Clock>, events: broadcast::Sender<Event>) -> (Client, Elsewhere) {
        let (inbox, intake) = inbox();
        let clocks = Clocks::open(Stamp::default(), ClockReading::of(&*clock));
        let meter = CommitMeter::new(clock.clone());
        let client = Client::new(inbox.clone(), 0, events, meter, (clock.clone(), clocks.shared()), None);
        (client, Elsewhere { intake, inbox, clock, clocks })
    }

    pub(crate) fn clock(&self) -> EngineClock {
        EngineClock { clock: self.clock.clone(), shared: self.clocks.shared() }
    }

    /// Where what is given back by answers to nobody is posted.
    pub(crate) fn inbox(&self) -> Inbox {
        self.inbox.clone()
    }

    /// Waits for what is asked next, at most so long.
    pub(crate) fn next(&mut self, most: Duration) -> Option<Request> {
        let next = self.intake.wait(Some(most)).ok();
        self.clocks.advance(ClockReading::of(&*self.clock));
        next
    }
}

/// Answers a letter with what came of its command elsewhere.
pub(crate) fn answer(letter: LetterHandle, reply: Result<Reply, Unavailable>, inbox: &Inbox) {
    match reply {
        Ok(reply) => match letter.answer(reply) {
            true => letter.publish(&mut |command| inbox.give_back(command)),
            false => letter.fail(Unavailable::nonsense()),
        },
        Err(why) => letter.fail(why),
    }
}

impl Client {
    /// Has any command done, waiting for work up to `wait` if it asks for some.
    pub(crate) async fn relay(&self, command: Command, wait: Duration) -> Result<Reply, Unavailable> {
        let work_wait = wait_of(&command, wait);
        Ok(surely(self.inbox().ask(command, work_wait).await?))
    }

    /// What the reply would be.
    pub(crate) async fn try_relay(&self, command: Command) -> Result<Reply, Unavailable> {
        self.inbox().try_out(command).await
    }

    /// Tells whoever waits for work in a queue that there is nothing, so that it looks elsewhere.
    pub(crate) fn end_waits(&self) {
        self.inbox().post_at_once(Request::EndWaits);
    }

    /// Engine time.
    pub(crate) fn engine_now(&self) -> Timestamp {
        self.engine_at(self.elapsed())
    }
}

/// Whether a command that asks for work has found none.
pub(crate) fn is_nothing(reply: &Reply) -> bool {
    match reply {
        Reply::Receive(Ok(handed)) => handed.is_nothing(),
        Reply::ReceiveHidden(Ok(shown)) => shown.is_empty(),
        Reply::AcceptWorkflow(Ok(taken)) => taken.is_nothing(),
        _ => false,
    }
}

/// What it is answered then.
pub(crate) fn nothing(command: &Command) -> Reply {
    match command {
        Command::AcceptWorkflow(_) => Reply::AcceptWorkflow(Ok(None)),
        Command::ReceiveHidden(_) => Reply::ReceiveHidden(Ok(Vec::new())),
        _ => Reply::Receive(Ok(Vec::new())),
    }
}

/// What it is answered when so many wait already.
pub(crate) fn too_many(command: &Command, waiting: usize) -> Reply {
    match command {
        Command::AcceptWorkflow(_) => Reply::AcceptWorkflow(Err(ReceiveRefusal::TooManyWaiting(waiting))),
        _ => Reply::Receive(Err(ReceiveRefusal::TooManyWaiting(waiting))),
    }
}

/// The token under which a command is to hand out, if it is one that does.
pub(crate) fn new_token(command: &mut Command) -> Option<&mut LockToken> {
    match command {
        Command::Receive(verb) => Some(&mut verb.token),
        Command::ReceiveRun(verb) => Some(&mut verb.token),
        Command::ReceiveDeadLetters(verb) => Some(&mut verb.token),
        Command::ReceiveDeferred(verb) => Some(&mut verb.token),
        Command::ReceiveDeferredDeadLetters(verb) => Some(&mut verb.token),
        Command::AcceptWorkflow(verb) => Some(&mut verb.token),
        _ => None,
    }
}

/// The token of a command that asks for work, or gives some back.
pub(crate) fn token_of(command: &Command) -> Option<LockToken> {
    match command {
        Command::Receive(verb) => Some(verb.token),
        Command::ReceiveRun(verb) => Some(verb.token),
        Command::ReceiveDeadLetters(verb) => Some(verb.token),
        Command::ReceiveFromWorkflow(verb) => Some(verb.token),
        Command::AcceptWorkflow(verb) => Some(verb.token),
        Command::Settle(verb) => Some(verb.token),
        Command::SettleRun(verb) => Some(verb.token),
        Command::CloseWorkflow(verb) => Some(verb.token),
        _ => None,
    }
}

/// Adds up what two partitions have of a queue.
pub(crate) fn add_counts(all: &mut Counts, more: &Counts) {
    let Counts {
        ready,
        locked,
        early,
        retry,
        exhausted,
        by_consumer,
        scheduled,
        dead_lettered,
        completed,
        expired,
        cancelled,
        purged,
        accepted,
    } = more;
    for (count, more) in [
        (&mut all.ready, ready),
        (&mut all.locked, locked),
        (&mut all.early, early),
        (&mut all.retry, retry),
        (&mut all.exhausted, exhausted),
        (&mut all.by_consumer, by_consumer),
        (&mut all.scheduled, scheduled),
        (&mut all.dead_lettered, dead_lettered),
        (&mut all.completed, completed),
        (&mut all.expired, expired),
        (&mut all.cancelled, cancelled),
        (&mut all.purged, purged),
        (&mut all.accepted, accepted),
    ] {
        *count += more;
    }
}

/// How a command waits for work, if it is one that does.
fn wait_of(command: &Command, wait: Duration) -> Option<WorkWait<Command>> {
    let receives = |waits_for: WaitsFor, token: LockToken| WorkWait {
        waits_for,
        wait,
        is_nothing: |answer| answer.as_ref().is_ok_and(is_nothing),
        nothing: || Ok(Reply::Receive(Ok(Vec::new()))),
        too_many: |waiting| Ok(Reply::Receive(Err(ReceiveRefusal::TooManyWaiting(waiting)))),
        token: Some(token),
    };
    match command {
        Command::Receive(verb) => Some(receives(verb.waits_for(), verb.token)),
        Command::ReceiveRun(verb) => Some(receives(verb.waits_for(), verb.token)),
        Command::ReceiveDeadLetters(verb) => Some(receives(verb.waits_for(), verb.token)),
        Command::ReceiveFromWorkflow(verb) => Some(receives(verb.waits_for(), verb.token)),
        Command::AcceptWorkflow(verb) if verb.workflow.is_none() => Some(WorkWait {
            nothing: || Ok(Reply::AcceptWorkflow(Ok(None))),
            too_many: |waiting| Ok(Reply::AcceptWorkflow(Err(ReceiveRefusal::TooManyWaiting(waiting)))),
            ..receives(verb.waits_for(), verb.token)
        }),
        _ => None,
    }
}
