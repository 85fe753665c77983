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
use super::threads::Mutex;
use super::threads::MutexGuard;
use super::threads::mpsc;
use crate::engine::query::Query;
use crate::engine::query::QueryAnswer;
use crate::engine::rules::command::Command;
use crate::engine::rules::command::LockedMessage;
use crate::engine::rules::command::Reply;
use crate::engine::rules::command::Settlement;
use crate::error::Fault;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::limits;
use crate::token::LockToken;

/// Something asked of the thread that writes.
pub(crate) enum Request {
    Command {
        command: Command,
        slot: ReplySlot,
        /// How long the command may wait for work, if it is one that can.
        wait: Option<Duration>,
    },
    Query {
        query: Query,
        slot: oneshot::Sender<Result<QueryAnswer, Unavailable>>,
    },
    Backup {
        target: PathBuf,
        slot: oneshot::Sender<Result<u64, Fault>>,
    },
    /// A command whose answer nobody waits for.
    GiveBack(Command),
    /// Answer when the clock's elapsed time is this.
    Sleep {
        until: Duration,
        slot: oneshot::Sender<()>,
    },
    /// Whoever waits for work under this token is answered now: with what it was given, or with nothing.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only endpoints of the daemon ask so"))]
    Withdraw(LockToken),
    /// Look at the clock again.
    Wake,
    Close {
        slot: oneshot::Sender<()>,
    },
}

/// Where a command's answer goes.
pub(crate) type ReplySlot = oneshot::Sender<Result<UndeliveredAnswer, Unavailable>>;

/// A request, and its room in the inbox until the thread has taken it.
pub(crate) struct QueuedRequest {
    pub(crate) request: Request,
    _room: Option<InboxPermit>,
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
}

/// The places of a request that is in the inbox.
struct InboxPermit {
    door: Arc<Door>,
    places: usize,
}

impl Drop for InboxPermit {
    fn drop(&mut self) {
        self.door.change(|queue| queue.places += self.places);
    }
}

/// A request that was posted. Dropping it withdraws the request, if there was no room for it yet.
pub(crate) struct PendingRequest {
    door: Arc<Door>,
    /// Its number among those that wait for room.
    number: Option<u64>,
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let withdrawn = self.door.change(|queue| queue.waiting.remove(&number));
            drop(withdrawn);
        }
    }
}

impl Door {
    /// Posts a request, or lets it wait for room behind those that wait already; false when nobody takes it any more.
    fn post(self: &Arc<Door>, places: usize, request: Request) -> Result<PendingRequest, InboxClosure> {
        let mut queue = self.lock();
        if !queue.waiting.is_empty() || queue.places < places {
            queue.last += 1;
            let number = queue.last;
            queue.waiting.insert(number, (places, request));
            return Ok(PendingRequest { door: self.clone(), number: Some(number) });
        }
        let refused = self.let_in(&mut queue, places, request);
        drop(queue);
        match refused {
            None => Ok(PendingRequest { door: self.clone(), number: None }),
            Some(_) => Err(InboxClosure),
        }
    }

    /// Changes what there is, and lets in whoever has room then.
    fn change<T>(self: &Arc<Door>, change: impl FnOnce(&mut InboxState) -> T) -> T {
        let mut queue = self.lock();
        let done = change(&mut queue);
        let mut refused = None;
        let has_room = |queue: &InboxState| {
            queue.waiting.first_key_value().is_some_and(|(_, (places, _))| *places <= queue.places)
        };
        while refused.is_none() && has_room(&queue) {
            let Some((_, (places, request))) = queue.waiting.pop_first() else { break };
            refused = self.let_in(&mut queue, places, request);
        }
        // Nobody takes requests any more: whoever waits hears of it.
        let waiting = if refused.is_some() { std::mem::take(&mut queue.waiting) } else { BTreeMap::new() };
        drop(queue);
        drop((refused, waiting));
        done
    }

    /// Sends a request for which there is room; gives it back when nobody takes it any more.
    fn let_in(
        self: &Arc<Door>,
        queue: &mut InboxState,
        places: usize,
        request: Request,
    ) -> Option<QueuedRequest> {
        queue.places -= places;
        let room = InboxPermit { door: self.clone(), places };
        queue.sender.send(QueuedRequest { request, _room: Some(room) }).err().map(|refused| refused.0)
    }

    fn lock(&self) -> MutexGuard<'_, InboxState> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nobody takes requests any more.
struct InboxClosure;

/// The thread's end of the inbox.
pub(crate) struct InboxReceiver {
    receiver: mpsc::Receiver<QueuedRequest>,
    /// A request that was looked for before it was asked for.
    next: Option<QueuedRequest>,
    ended: Arc<SetOnce<Unavailable>>,
}

impl Drop for InboxReceiver {
    /// However the thread ended: nobody waits for an answer that cannot come.
    fn drop(&mut self) {
        self.end(match std::thread::panicking() {
            true => Unavailable::Stopped(Fault::Defect("the thread that writes has panicked".to_owned())),
            false => Unavailable::Closed,
        });
    }
}

/// Makes an inbox.
pub(crate) fn inbox() -> (Inbox, InboxReceiver) {
    let (sender, receiver) = mpsc::channel();
    let ended = Arc::new(SetOnce::new());
    let queue =
        InboxState { sender: sender.clone(), places: limits::INBOX_MAX, waiting: BTreeMap::new(), last: 0 };
    let door = Arc::new(Door { queue: Mutex::new(queue) });
    (Inbox { sender, door, ended: ended.clone() }, InboxReceiver { receiver, next: None, ended })
}

impl InboxReceiver {
    /// Waits for a request, at most so long.
    pub(crate) fn wait(&mut self, time_limit: Option<Duration>) -> Result<QueuedRequest, RecvTimeoutError> {
        match (self.next.take(), time_limit) {
            (Some(posted), _) => Ok(posted),
            (None, Some(time_limit)) => self.receiver.recv_timeout(time_limit),
            (None, None) => self.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    /// The next request, if one waits.
    pub(crate) fn take(&mut self) -> Option<QueuedRequest> {
        self.next.take().or_else(|| self.receiver.try_recv().ok())
    }

    /// Whether a request waits.
    pub(crate) fn has_more(&mut self) -> bool {
        self.next = self.take();
        self.next.is_some()
    }

    /// Tells everybody who asks from now on why there is no answer.
    pub(crate) fn end(&self, why: Unavailable) {
        let _ = self.ended.set(why);
    }
}

impl Inbox {
    /// Posts a request. It waits for room if the inbox is full, behind those that came before it, as long as its ticket is
    /// kept. A request with large bodies takes more room.
    ///
    /// Its place in the order is taken when this is first polled: nothing is awaited before, not even a turn of the
    /// runtime, which makes a task that has done much pause at anything that could wait.
    pub(crate) async fn post(&self, request: Request) -> Result<PendingRequest, Unavailable> {
        let places = match &request {
            Request::Command { command, .. } => 1 + command.bytes() / limits::INBOX_PLACE_BYTES,
            _ => 1,
        };
        match self.door.post(places.min(limits::INBOX_MAX), request) {
            Ok(ticket) => Ok(ticket),
            Err(InboxClosure) => Err(self.why_ended().await),
        }
    }

    /// Posts a command and waits for its answer.
    pub(crate) async fn ask(&self, command: Command, wait: Option<Duration>) -> Result<Reply, Unavailable> {
        let (slot, answer) = oneshot::channel();
        let _ticket = self.post(Request::Command { command, slot, wait }).await?;
        match answer.await {
            Ok(undelivered) => Ok(undelivered?.open()),
            Err(_) => Err(self.why_ended().await),
        }
    }

    /// Posts a command that asks for work, and waits for its answer up to `wait`, or until there is `enough`. Then the
    /// answer is what the command was given before, or nothing: it is never taken back on its way.
    pub(crate) async fn ask_until(
        &self,
        command: Command,
        token: LockToken,
        wait: Duration,
        enough: impl Future<Output = ()>,
    ) -> Result<Reply, Unavailable> {
        let (slot, mut answer) = oneshot::channel();
        self.post(Request::Command { command, slot, wait: Some(wait) }).await?;
        let answered = tokio::select! {
            biased;
            answered = &mut answer => answered,
            () = enough => {
                self.post_at_once(Request::Withdraw(token));
                answer.await
            }
        };
        match answered {
            Ok(undelivered) => Ok(undelivered?.open()),
            Err(_) => Err(self.why_ended().await),
        }
    }

    /// Asks to look something up.
    pub(crate) async fn query(&self, query: Query) -> Result<QueryAnswer, Unavailable> {
        let (slot, answer) = oneshot::channel();
        let _ticket = self.post(Request::Query { query, slot }).await?;
        match answer.await {
            Ok(answer) => answer,
            Err(_) => Err(self.why_ended().await),
        }
    }

    /// Posts without waiting for a place: for what is given back, of which there is never more than was handed out.
    pub(crate) fn post_at_once(&self, request: Request) {
        let _ = self.sender.send(QueuedRequest { request, _room: None });
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

/// An answer on its way. If nobody opens it, because its receiver has gone, the messages in it are given back
/// uncounted.
pub(crate) struct UndeliveredAnswer {
    reply: Option<Reply>,
    queue: Option<QueueName>,
    inbox: Inbox,
}

/// An answer that waits for the commit, and the queue whose messages it may carry.
pub(crate) struct UncommittedAnswer {
    pub(crate) reply: Reply,
    pub(crate) queue: Option<QueueName>,
}

impl UncommittedAnswer {
    pub(crate) fn into_undelivered(self, inbox: &Inbox) -> UndeliveredAnswer {
        UndeliveredAnswer { reply: Some(self.reply), queue: self.queue, inbox: inbox.clone() }
    }
}

impl UndeliveredAnswer {
    /// Takes the answer out.
    pub(crate) fn open(mut self) -> Reply {
        self.reply.take().expect("a reply is sent once")
    }

    fn give_back(&self, queue: &QueueName, handed: &LockedMessage) {
        let command = release(queue, handed);
        self.inbox.post_at_once(Request::GiveBack(command));
    }
}

impl Drop for UndeliveredAnswer {
    fn drop(&mut self) {
        let Some(queue) = &self.queue else { return };
        match &self.reply {
            // Last first, so that none of a run waits behind one that was given back before it.
            Some(Reply::Receive(Ok(handed))) => {
                handed.iter().rev().for_each(|handed| self.give_back(queue, handed));
            }
            Some(Reply::Take(Ok(Some(accepted)))) => {
                let command = Command::CloseTaken { queue: queue.clone(), token: accepted.token };
                self.inbox.post_at_once(Request::GiveBack(command));
            }
            _ => {}
        }
    }
}

fn release(queue: &QueueName, handed: &LockedMessage) -> Command {
    Command::Settle {
        queue: queue.clone(),
        token: handed.token,
        sequence: handed.sequence,
        delivery_count: handed.record.delivery_count,
        settlement: Settlement::Release,
    }
}
