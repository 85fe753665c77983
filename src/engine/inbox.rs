//! The bounded queue of requests to the one thread that writes, and their reply slots.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use tokio::sync::SetOnce;
use tokio::sync::oneshot;

// Named from here, because the tests compile this file among other threads (`handoff`).
use super::left_answers::LeftAnswers;
use super::letter::AwaitedAnswer;
use super::letter::LetterHandle;
use super::letter::WorkWait;
use super::letter::letter;
use super::threads::Mutex;
use super::threads::MutexGuard;
use super::threads::mpsc;
use crate::engine::query::LookSlot;
use crate::engine::query::Query;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::verb::Answer;
use crate::engine::rules::verb::EngineVerb;
use crate::engine::rules::verb::surely;
use crate::engine::rules::verbs::Command;
use crate::engine::store::copy_room::CopyRoom;
use crate::error::Fault;
use crate::error::OperateError;
use crate::error::Unavailable;
use crate::limits;
use crate::token::LockToken;

/// Where the answer to a backup goes.
pub(crate) type BackupSlot = oneshot::Sender<Result<u64, OperateError>>;

/// A backup that is asked for.
pub(crate) struct BackupOrder {
    pub(crate) target: PathBuf,
    /// The room that it was promised, where room is looked after.
    pub(crate) room: Option<CopyRoom>,
    pub(crate) slot: BackupSlot,
}

/// Something asked of the thread that writes.
pub(crate) enum Request {
    Ask(LetterHandle),
    /// What a command would be answered, if it were asked now.
    TryOut(LetterHandle),
    Query(Box<Query>),
    Backup(Box<BackupOrder>),
    /// A command whose answer nobody waits for.
    GiveBack(Box<Command>),
    /// Answer when the clock's elapsed time is this.
    Sleep {
        until: Duration,
        slot: oneshot::Sender<()>,
    },
    /// Whoever waits for work under this token is answered now: with what it was given, or with nothing.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only endpoints of the daemon ask so"))]
    Withdraw(LockToken),
    /// Whoever waits for work in a queue is answered now, with nothing.
    #[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "only partitions are given to others"))]
    EndWaits,
    /// Look at the clock again.
    Wake,
    /// Write down what the clocks show, for whoever follows.
    #[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "nobody follows the log of one machine"))]
    NoteTime,
    Close {
        slot: oneshot::Sender<()>,
    },
}

impl Request {
    /// Answers one that comes too late. Whose slot goes with it asks why the engine has ended.
    pub(crate) fn refuse(self, why: &Unavailable) {
        match self {
            Request::Ask(letter) | Request::TryOut(letter) => letter.fail(why.clone()),
            Request::Close { slot } => drop(slot.send(())),
            Request::Query(_)
            | Request::Backup(_)
            | Request::GiveBack(_)
            | Request::Sleep { .. }
            | Request::Withdraw(_)
            | Request::EndWaits
            | Request::NoteTime
            | Request::Wake => {}
        }
    }
}

/// A request in the inbox, and the places that it takes there.
struct QueuedRequest {
    request: Request,
    places: usize,
}

/// The handle by which requests get to the thread that writes. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Inbox {
    sender: mpsc::Sender<QueuedRequest>,
    door: Arc<Door>,
    ended: Arc<SetOnce<Unavailable>>,
}

/// Lets requests in, in the order in which they came, as long as there is room.
struct Door {
    queue: Mutex<InboxState>,
}

struct InboxState {
    sender: mpsc::Sender<QueuedRequest>,
    places: usize,
    /// Requests for which there is no room yet, by the order in which they came. They are in the memory of those who ask
    /// anyway, and go with them.
    waiting: BTreeMap<u64, (usize, Request)>,
    last: u64,
    /// Nobody takes requests any more.
    is_closed: bool,
}

/// A request that was posted. Dropping it withdraws the request, if there was no room for it yet.
pub(crate) struct PendingRequest {
    /// Where it waits for room, and its number there.
    waiting: Option<(Arc<Door>, u64)>,
}

impl PendingRequest {
    /// Withdraws the request, if there was no room for it yet; true when there was none.
    fn withdraw(&mut self) -> bool {
        let Some((door, number)) = self.waiting.take() else { return false };
        let withdrawn = door.change(|queue| queue.waiting.remove(&number));
        withdrawn.is_some()
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.withdraw();
    }
}

impl Door {
    /// Posts a request, or lets it wait for room behind those that wait already; refuses it when nobody takes requests any more.
    fn post(self: &Arc<Door>, places: usize, request: Request) -> Result<PendingRequest, InboxClosure> {
        let mut queue = self.lock();
        if queue.is_closed {
            return Err(InboxClosure);
        }
        if !queue.waiting.is_empty() || queue.places < places {
            queue.last += 1;
            let number = queue.last;
            queue.waiting.insert(number, (places, request));
            return Ok(PendingRequest { waiting: Some((self.clone(), number)) });
        }
        let refused = let_in(&mut queue, places, request);
        drop(queue);
        match refused {
            None => Ok(PendingRequest { waiting: None }),
            Some(_) => Err(InboxClosure),
        }
    }

    /// Changes what there is, and lets in whoever has room then.
    fn change<T>(&self, change: impl FnOnce(&mut InboxState) -> T) -> T {
        let mut queue = self.lock();
        let done = change(&mut queue);
        let mut refused = None;
        let has_room = |queue: &InboxState| {
            queue.waiting.first_key_value().is_some_and(|(_, (places, _))| *places <= queue.places)
        };
        while refused.is_none() && has_room(&queue) {
            let Some((_, (places, request))) = queue.waiting.pop_first() else { break };
            refused = let_in(&mut queue, places, request);
        }
        // Nobody takes requests any more: whoever waits hears of it.
        let waiting = if refused.is_some() { std::mem::take(&mut queue.waiting) } else { BTreeMap::new() };
        drop(queue);
        drop((refused, waiting));
        done
    }

    /// Lets nobody in any more, and gives up who waits: whoever drops them tells them.
    fn close(&self) -> BTreeMap<u64, (usize, Request)> {
        let mut queue = self.lock();
        queue.is_closed = true;
        std::mem::take(&mut queue.waiting)
    }

    fn lock(&self) -> MutexGuard<'_, InboxState> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends a request for which there is room; gives it back when nobody takes it any more.
fn let_in(queue: &mut InboxState, places: usize, request: Request) -> Option<QueuedRequest> {
    queue.places -= places;
    queue.sender.send(QueuedRequest { request, places }).err().map(|refused| refused.0)
}

/// Nobody takes requests any more.
struct InboxClosure;

/// The thread's end of the inbox.
pub(crate) struct InboxReceiver {
    receiver: mpsc::Receiver<QueuedRequest>,
    door: Arc<Door>,
    /// The places of what was taken, which others can have.
    freed: usize,
    ended: Arc<SetOnce<Unavailable>>,
}

impl Drop for InboxReceiver {
    /// However the thread ended: nobody waits for an answer that cannot come.
    fn drop(&mut self) {
        self.end(match std::thread::panicking() {
            true => Unavailable::Stopped(Fault::Defect("the thread that writes has panicked".to_owned())),
            false => Unavailable::Closed,
        });
        let waiting = self.door.close();
        drop(waiting);
        while self.take().is_some() {}
    }
}

/// Makes an inbox.
pub(crate) fn inbox() -> (Inbox, InboxReceiver) {
    let (sender, receiver) = mpsc::channel();
    let ended = Arc::new(SetOnce::new());
    let queue = InboxState {
        sender: sender.clone(),
        places: limits::INBOX_MAX,
        waiting: BTreeMap::new(),
        last: 0,
        is_closed: false,
    };
    let door = Arc::new(Door { queue: Mutex::new(queue) });
    let intake = InboxReceiver { receiver, door: door.clone(), freed: 0, ended: ended.clone() };
    (Inbox { sender, door, ended }, intake)
}

impl InboxReceiver {
    /// Waits for a request, at most so long.
    pub(crate) fn wait(&mut self, time_limit: Option<Duration>) -> Result<Request, RecvTimeoutError> {
        self.make_room();
        let queued = match time_limit {
            Some(time_limit) => self.receiver.recv_timeout(time_limit)?,
            None => self.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected)?,
        };
        Ok(self.unpack(queued))
    }

    /// The next request, if one waits.
    pub(crate) fn take(&mut self) -> Option<Request> {
        let queued = self.receiver.try_recv().ok()?;
        Some(self.unpack(queued))
    }

    /// Lets in who waits for the places of what was taken.
    pub(crate) fn make_room(&mut self) {
        let freed = std::mem::take(&mut self.freed);
        if freed > 0 {
            self.door.change(|queue| queue.places += freed);
        }
    }

    fn unpack(&mut self, queued: QueuedRequest) -> Request {
        self.freed += queued.places;
        queued.request
    }

    /// Tells everybody who asks from now on why there is no answer.
    pub(crate) fn end(&self, why: Unavailable) {
        let _ = self.ended.set(why);
    }
}

impl Inbox {
    /// Posts a request. It waits for room if the inbox is full, behind those that came before it, as long as what is
    /// returned is kept. A request with `bytes` of bodies takes more room.
    ///
    /// Its place in the order is taken when this is first polled: nothing is awaited before, not even a turn of the
    /// runtime, which makes a task that has done much pause at anything that could wait.
    pub(crate) async fn post(&self, request: Request, bytes: usize) -> Result<PendingRequest, Unavailable> {
        let places = 1 + bytes / limits::INBOX_PLACE_BYTES;
        match self.door.post(places.min(limits::INBOX_MAX), request) {
            Ok(pending) => Ok(pending),
            Err(InboxClosure) => Err(self.why_ended().await),
        }
    }

    /// Posts a verb, with how it waits for work if it may, and waits for its answer.
    pub(crate) async fn ask<V: EngineVerb>(
        &self,
        verb: V,
        work_wait: Option<WorkWait<V>>,
    ) -> Result<Answer<V>, Unavailable> {
        let bytes = verb.bytes();
        let (letter, answer) = self.letter(verb, work_wait);
        let _pending = self.post(Request::Ask(letter), bytes).await?;
        self.open(answer.await).await
    }

    /// Posts a verb that takes no room, so that it is heard whoever waits for the answer.
    pub(crate) async fn ask_at_once<V: EngineVerb>(&self, verb: V) -> Result<Answer<V>, Unavailable> {
        let (letter, answer) = self.letter(verb, None);
        self.post_at_once(Request::Ask(letter));
        self.open(answer.await).await
    }

    /// Posts a verb that asks for work, and waits for its answer. One that is left is noted, so that whoever asks next can wait
    /// until what it handed out is given back.
    pub(crate) async fn ask_or_leave<V: EngineVerb>(
        &self,
        verb: V,
        work_wait: WorkWait<V>,
        left: &LeftAnswers,
    ) -> Result<Answer<V>, Unavailable> {
        let bytes = verb.bytes();
        let (letter, answer) = self.letter(verb, Some(work_wait));
        let mut leaving = left.note_unless_answered(answer.left());
        let _pending = self.post(Request::Ask(letter), bytes).await?;
        let answered = answer.await;
        leaving.is_answered = true;
        self.open(answered).await
    }

    /// Posts a verb that asks for work under a token, and waits for its answer, or until there is `enough`. Then the
    /// answer is what the verb was given before, or nothing: it is never taken back on its way.
    pub(crate) async fn ask_until<V: EngineVerb>(
        &self,
        verb: V,
        token: LockToken,
        work_wait: WorkWait<V>,
        enough: impl Future<Output = ()>,
    ) -> Result<Answer<V>, Unavailable> {
        let nothing = work_wait.nothing;
        let (letter, mut answer) = self.letter(verb, Some(WorkWait { token: Some(token), ..work_wait }));
        let mut pending = self.post(Request::Ask(letter), 0).await?;
        let answered = tokio::select! {
            biased;
            answered = &mut answer => answered,
            // It waits for room: a withdrawal, which needs none, would come before it.
            () = enough => match pending.withdraw() {
                true => return Ok(nothing()),
                false => {
                    self.post_at_once(Request::Withdraw(token));
                    answer.await
                }
            }
        };
        self.open(answered).await
    }

    /// Asks what a command would be answered.
    pub(crate) async fn try_out(&self, command: Command) -> Result<Reply, Unavailable> {
        let bytes = command.bytes();
        let (letter, answer) = self.letter(command, None);
        let _pending = self.post(Request::TryOut(letter), bytes).await?;
        self.open(answer.await).await.map(surely)
    }

    fn letter<V: EngineVerb>(
        &self,
        verb: V,
        work_wait: Option<WorkWait<V>>,
    ) -> (LetterHandle, AwaitedAnswer<V, impl FnMut(Command)>) {
        letter(verb, work_wait, |command| self.give_back(command))
    }

    async fn open<A>(&self, answer: Option<Result<A, Unavailable>>) -> Result<A, Unavailable> {
        match answer {
            Some(answer) => answer,
            None => Err(self.why_ended().await),
        }
    }

    /// Asks to look something up, and waits for what is found.
    pub(crate) async fn look<T>(&self, query: impl FnOnce(LookSlot<T>) -> Query) -> Result<T, Unavailable> {
        let (slot, found) = oneshot::channel();
        let _pending = self.post(Request::Query(Box::new(query(LookSlot(slot)))), 0).await?;
        match found.await {
            Ok(found) => found,
            Err(_) => Err(self.why_ended().await),
        }
    }

    /// Posts a command whose answer nobody waits for.
    pub(crate) fn give_back(&self, command: Command) {
        self.post_at_once(Request::GiveBack(Box::new(command)));
    }

    /// Posts without waiting for a place: for what is given back, of which there is never more than was handed out.
    pub(crate) fn post_at_once(&self, request: Request) {
        let _ = self.sender.send(QueuedRequest { request, places: 0 });
    }

    /// Tells everybody why there is no answer from now on: who commits knows first.
    pub(crate) fn end(&self, why: Unavailable) {
        let _ = self.ended.set(why);
    }

    /// Why there is no answer any more, if there is none.
    pub(crate) fn ended(&self) -> Option<&Unavailable> {
        self.ended.get()
    }

    /// Why there is no answer: the thread that writes says so when it ends.
    pub(crate) async fn why_ended(&self) -> Unavailable {
        self.ended.wait().await.clone()
    }
}
