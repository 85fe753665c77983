//! The one envelope of a request: it carries a verb to the thread that writes, and the answer back.
//!
//! Whoever asks and whoever answers share it, so a request costs one allocation. Its answer has the type that the verb's
//! answer has; the threads in between know neither.

use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::PoisonError;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;
use std::time::Duration;

// Named from here, because the tests compile this file among other threads (`handoff`).
use super::threads::Mutex;
use super::threads::MutexGuard;
use crate::engine::rules::Rules;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::effect::Effect;
use crate::engine::rules::log_weight::LogWeight;
use crate::engine::rules::records::MutableRecords;
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::room_need::RoomNeed;
use crate::engine::rules::verb::Answer;
use crate::engine::rules::verb::EngineVerb;
use crate::engine::rules::verb::HandOut;
use crate::engine::rules::verb::WorkVerb;
use crate::engine::rules::verbs::Command;
use crate::engine::rules::waits_for::WaitsFor;
use crate::error::ReceiveRefusal;
use crate::error::Unavailable;
use crate::token::LockToken;

/// What was asked, for the thread that writes. Dropped unanswered, it tells whoever waits that no answer comes.
pub(crate) struct LetterHandle(Arc<dyn Envelope>);

/// A verb on its way, and its answer.
///
/// A verb that hands out is needed until it is certain who has what it handed out:
///
/// | the answer | who takes the verb |
/// |---|---|
/// | is awaited | who applies it; of one that hands out, a copy |
/// | has arrived | who leaves without the answer, to give back with it |
/// | is left | who publishes the answer, to give back with it |
/// | is lost | nobody |
struct Letter<V: EngineVerb> {
    /// For the thread that writes and the one that commits, which never have it at the same time, and for who has left. Whoever locks
    /// both locks it before the slot.
    work: Mutex<LetterWork<V>>,
    /// For the one that commits, and whoever waits.
    slot: Mutex<AnswerSlot<V>>,
    work_wait: Option<WorkWait<V>>,
    is_bulk: bool,
}

struct LetterWork<V: EngineVerb> {
    /// Kept by a verb that hands out, to be applied again or given back.
    verb: Option<V>,
    /// The answer, which waits for the commit.
    answer: Option<Answer<V>>,
    /// Whether it is being done elsewhere, where something may have been handed out that is not known here yet.
    is_elsewhere: bool,
}

/// Where the answer gets to whoever waits.
enum AnswerSlot<V: EngineVerb> {
    Awaited(Option<Waker>),
    Arrived(Result<Answer<V>, Unavailable>),
    /// No answer comes: the engine says why when it ends.
    Lost,
    /// Nobody waits for it any more, but perhaps some until what it hands out is given back.
    Left(Vec<Waker>),
    /// It was taken out.
    Taken,
}

/// How a verb waits for work.
pub(crate) struct WorkWait<V: EngineVerb> {
    pub(crate) waits_for: WaitsFor,
    /// How long it may wait.
    pub(crate) wait: Duration,
    /// Whether it found nothing.
    pub(crate) is_nothing: fn(&Answer<V>) -> bool,
    /// The answer when it has waited long enough.
    pub(crate) nothing: fn() -> Answer<V>,
    /// The answer when so many wait already.
    pub(crate) too_many: fn(usize) -> Answer<V>,
    /// The token under which it can be told that it has waited long enough.
    pub(crate) token: Option<LockToken>,
}

impl<V: WorkVerb> WorkWait<V> {
    pub(crate) fn new(verb: &V, wait: Duration) -> WorkWait<V> {
        WorkWait {
            waits_for: verb.waits_for(),
            wait,
            is_nothing: |answer| answer.as_ref().is_ok_and(HandOut::is_nothing),
            nothing: || Ok(V::Done::default()),
            too_many: |waiting| Err(ReceiveRefusal::TooManyWaiting(waiting)),
            token: None,
        }
    }
}

/// An answer that is awaited. Dropped, it gives back what an answer hands out that has come, or comes later.
pub(crate) struct AwaitedAnswer<V: EngineVerb, P: FnMut(Command)> {
    letter: Arc<Letter<V>>,
    is_taken: bool,
    /// Posts what is given back.
    post: P,
}

/// Puts a verb into its envelope. `None` arrives when no answer comes.
pub(crate) fn letter<V: EngineVerb, P: FnMut(Command)>(
    verb: V,
    work_wait: Option<WorkWait<V>>,
    post: P,
) -> (LetterHandle, AwaitedAnswer<V, P>) {
    let letter = Arc::new(Letter {
        is_bulk: verb.is_bulk(),
        work: Mutex::new(LetterWork { verb: Some(verb), answer: None, is_elsewhere: false }),
        slot: Mutex::new(AnswerSlot::Awaited(None)),
        work_wait,
    });
    (LetterHandle(letter.clone()), AwaitedAnswer { letter, is_taken: false, post })
}

/// An answer that may have been left.
pub(crate) struct LeftAnswer(Arc<dyn Envelope>);

impl LeftAnswer {
    /// Whether what it hands out is still to be given back. Then `context` is woken when it is.
    pub(crate) fn is_under_way(&self, context: &Context<'_>) -> bool {
        self.0.is_under_way(context)
    }
}

impl<V: EngineVerb, P: FnMut(Command)> AwaitedAnswer<V, P> {
    /// What is left of it if it is dropped.
    pub(crate) fn left(&self) -> LeftAnswer {
        LeftAnswer(self.letter.clone())
    }
}

#[cfg(test)]
impl<V: EngineVerb, P: FnMut(Command)> AwaitedAnswer<V, P> {
    /// The answer, if it has come; `None` in it when none comes.
    pub(crate) fn try_take(&mut self) -> Option<Option<Result<Answer<V>, Unavailable>>> {
        let mut slot = self.letter.slot();
        self.is_taken = !matches!(*slot, AnswerSlot::Awaited(_));
        self.is_taken.then(|| slot.take())
    }
}

impl<V: EngineVerb> AnswerSlot<V> {
    /// Takes the answer out, if there is one.
    fn take(&mut self) -> Option<Result<Answer<V>, Unavailable>> {
        match std::mem::replace(self, AnswerSlot::Taken) {
            AnswerSlot::Arrived(answer) => Some(answer),
            _ => None,
        }
    }

    /// The same for who waits no longer: what comes later is given back.
    fn leave(&mut self) -> Option<Result<Answer<V>, Unavailable>> {
        let is_awaited = matches!(self, AnswerSlot::Awaited(_));
        let left = self.take();
        if is_awaited {
            *self = AnswerSlot::Left(Vec::new());
        }
        left
    }
}

impl<V: EngineVerb, P: FnMut(Command) + Unpin> Future for AwaitedAnswer<V, P> {
    type Output = Option<Result<Answer<V>, Unavailable>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let awaited = self.get_mut();
        let mut slot = awaited.letter.slot();
        if let AnswerSlot::Awaited(waker) = &mut *slot {
            match waker {
                Some(waker) => waker.clone_from(context.waker()),
                none => *none = Some(context.waker().clone()),
            }
            return Poll::Pending;
        }
        awaited.is_taken = true;
        Poll::Ready(slot.take())
    }
}

impl<V: EngineVerb, P: FnMut(Command)> Drop for AwaitedAnswer<V, P> {
    fn drop(&mut self) {
        if self.is_taken {
            return;
        }
        let left = self.letter.slot().leave();
        if let Some(Ok(Ok(done))) = left
            && let Some(verb) = self.letter.work().verb.take()
        {
            verb.give_back(done, &mut self.post);
        }
    }
}

impl<V: EngineVerb> Letter<V> {
    /// Whether it waits for work that nobody would have, as who has left it may ask again already.
    fn is_left_work(&self) -> bool {
        self.work_wait.is_some() && self.is_left()
    }

    fn work(&self) -> MutexGuard<'_, LetterWork<V>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self) -> MutexGuard<'_, AnswerSlot<V>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands an answer over, and says who is to be woken for it; gives it back when nobody waits for it.
    fn arrive(&self, arrived: AnswerSlot<V>) -> Result<Option<Waker>, AnswerSlot<V>> {
        let mut slot = self.slot();
        match &mut *slot {
            AnswerSlot::Awaited(waker) => {
                let waker = waker.take();
                *slot = arrived;
                Ok(waker)
            }
            _ => Err(arrived),
        }
    }

    /// Hands over that there is no answer. One that was left is not under way any more.
    fn end(&self, arrived: AnswerSlot<V>) {
        match self.arrive(arrived) {
            Ok(waker) => wake(waker),
            Err(_) if self.is_left() => {
                let mut work = self.work();
                (work.answer, work.is_elsewhere) = (None, false);
                drop(work);
                self.wake_who_left();
            }
            Err(_) => {}
        }
    }

    /// Wakes who waits until what was left is given back.
    fn wake_who_left(&self) {
        let wakers = match &mut *self.slot() {
            AnswerSlot::Left(wakers) => std::mem::take(wakers),
            _ => Vec::new(),
        };
        wake(wakers);
    }
}

/// What the threads of the engine do with a letter, whatever verb is in it.
pub(crate) trait Envelope: Send + Sync {
    /// Whether it moves as many messages as one turn should.
    fn is_bulk(&self) -> bool;
    /// Whether nobody waits for its answer any more.
    fn is_left(&self) -> bool;
    /// Whether it is left, and what it hands out is still to be given back. Then `context` is woken when it is.
    fn is_under_way(&self, context: &Context<'_>) -> bool;
    /// What it weighs for a log, in bytes.
    fn log_weight(&self, records: &dyn Records) -> Read<usize>;
    /// What it takes of the room that there is.
    fn room(&self, records: &dyn Records) -> Read<RoomNeed>;
    /// Answers that there is no room for it; false if it is done all the same.
    fn refuse_for_room(&self) -> bool;
    /// What it waits for if there is nothing; `None` for what never waits.
    fn waits_for(&self) -> Option<&WaitsFor>;
    /// How long it may wait.
    fn wait(&self) -> Duration;
    /// The token under which it can be told that it has waited long enough.
    fn token(&self) -> Option<LockToken>;
    /// Does what is asked, and keeps the answer for when it is committed. What asks for work can be applied again.
    fn apply(
        &self,
        rules: &mut Rules,
        now: ClockInstants,
        records: &mut dyn MutableRecords,
    ) -> Read<LetterOutcome>;
    /// Answers that there was nothing.
    fn find_nothing(&self);
    /// Answers that too many wait already.
    fn refuse_to_wait(&self, waiting: usize);
    /// Lets the answer out. What it hands out to nobody is posted to be given back.
    fn publish(&self, post: &mut dyn FnMut(Command));
    /// What is asked, for whoever tries it out or has it done elsewhere; `None` if it can only be done here, or asks for work and is
    /// left. From then on one that is left is under way until it is answered.
    fn command(&self) -> Option<Command>;
    /// Keeps the reply to that command as the answer; false if it answers something else.
    fn answer(&self, reply: Reply) -> bool;
    /// Says why there is no answer.
    fn fail(&self, why: Unavailable);
    /// Says that no answer comes, if none has come.
    fn lose(&self);
}

/// What came of a verb; its answer is in its letter.
pub(crate) struct LetterOutcome {
    pub(crate) effects: Vec<Effect>,
    /// Whether it asked for work and there was none.
    pub(crate) found_nothing: bool,
}

impl<V: EngineVerb> Envelope for Letter<V> {
    fn is_bulk(&self) -> bool {
        self.is_bulk
    }

    fn is_left(&self) -> bool {
        matches!(*self.slot(), AnswerSlot::Left(_))
    }

    fn is_under_way(&self, context: &Context<'_>) -> bool {
        let work = self.work();
        let hands_out = match (&work.answer, &self.work_wait) {
            (Some(answer), Some(work_wait)) => !(work_wait.is_nothing)(answer),
            (answer, _) => answer.is_some() || work.is_elsewhere,
        };
        match &mut *self.slot() {
            AnswerSlot::Left(wakers) if hands_out => {
                if !wakers.iter().any(|waker| waker.will_wake(context.waker())) {
                    wakers.push(context.waker().clone());
                }
                true
            }
            _ => false,
        }
    }

    fn log_weight(&self, records: &dyn Records) -> Read<usize> {
        let mut weight = LogWeight::default();
        if let Some(verb) = &self.work().verb {
            verb.weigh(records, &mut weight)?;
        }
        Ok(weight.bytes())
    }

    fn room(&self, records: &dyn Records) -> Read<RoomNeed> {
        self.work().verb.as_ref().map_or(Ok(RoomNeed::Nothing), |verb| verb.room(records))
    }

    fn refuse_for_room(&self) -> bool {
        let mut work = self.work();
        let refused = work.verb.as_ref().and_then(EngineVerb::without_room);
        let is_refused = refused.is_some();
        work.answer = refused;
        is_refused
    }

    fn waits_for(&self) -> Option<&WaitsFor> {
        self.work_wait.as_ref().map(|work_wait| &work_wait.waits_for)
    }

    fn wait(&self) -> Duration {
        self.work_wait.as_ref().map_or(Duration::ZERO, |work_wait| work_wait.wait)
    }

    fn token(&self) -> Option<LockToken> {
        self.work_wait.as_ref().and_then(|work_wait| work_wait.token)
    }

    fn apply(
        &self,
        rules: &mut Rules,
        now: ClockInstants,
        records: &mut dyn MutableRecords,
    ) -> Read<LetterOutcome> {
        let mut work = self.work();
        if self.is_left_work() {
            return Ok(LetterOutcome { effects: Vec::new(), found_nothing: true });
        }
        let verb = if V::HANDS_OUT { work.verb.clone() } else { work.verb.take() };
        let outcome =
            rules.run(now, verb.expect("a letter is applied once, if it hands nothing out"), records)?;
        let found_nothing =
            self.work_wait.as_ref().is_some_and(|work_wait| (work_wait.is_nothing)(&outcome.reply));
        work.answer = Some(outcome.reply);
        Ok(LetterOutcome { effects: outcome.effects, found_nothing })
    }

    fn find_nothing(&self) {
        self.work().answer = self.work_wait.as_ref().map(|work_wait| (work_wait.nothing)());
    }

    fn refuse_to_wait(&self, waiting: usize) {
        self.work().answer = self.work_wait.as_ref().map(|work_wait| (work_wait.too_many)(waiting));
    }

    fn publish(&self, post: &mut dyn FnMut(Command)) {
        let mut work = self.work();
        let Some(answer) = work.answer.take() else { return };
        work.is_elsewhere = false;
        let refused = match self.arrive(AnswerSlot::Arrived(Ok(answer))) {
            Ok(waker) => {
                drop(work);
                return wake(waker);
            }
            Err(refused) => refused,
        };
        if let AnswerSlot::Arrived(Ok(Ok(done))) = refused
            && let Some(verb) = work.verb.take()
        {
            verb.give_back(done, post);
        }
        // Only now: until then it is under way for who waits that it is given back.
        drop(work);
        self.wake_who_left();
    }

    fn command(&self) -> Option<Command> {
        let mut work = self.work();
        if self.is_left_work() {
            return None;
        }
        let command = work.verb.clone()?.into_command();
        work.is_elsewhere = command.is_some();
        command
    }

    fn answer(&self, reply: Reply) -> bool {
        let answer = V::answer_in(reply);
        let is_one = answer.is_some();
        self.work().answer = answer;
        is_one
    }

    fn fail(&self, why: Unavailable) {
        self.end(AnswerSlot::Arrived(Err(why)));
    }

    fn lose(&self) {
        self.end(AnswerSlot::Lost);
    }
}

/// Wakes somebody, while nothing is locked: a waker may run what it wakes.
fn wake(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}

impl Deref for LetterHandle {
    type Target = dyn Envelope;

    fn deref(&self) -> &(dyn Envelope + 'static) {
        &*self.0
    }
}

impl LetterHandle {
    /// Lets the answer out, and is done with.
    pub(crate) fn publish(self, post: &mut dyn FnMut(Command)) {
        self.0.publish(post);
    }

    /// Says why there is no answer, and is done with.
    pub(crate) fn fail(self, why: Unavailable) {
        self.0.fail(why);
    }
}

impl Drop for LetterHandle {
    fn drop(&mut self) {
        self.0.lose();
    }
}
