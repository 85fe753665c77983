//! The bounded queue of requests to the one thread that writes, and their reply slots.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;
use tokio::sync::SetOnce;
use tokio::sync::oneshot;

// Named from here, because the tests compile this file among other threads (`handoff`).
use super::threads::mpsc;
use crate::engine::query::Answer;
use crate::engine::query::Query;
use crate::engine::rules::command::Command;
use crate::engine::rules::command::Handed;
use crate::engine::rules::command::Reply;
use crate::engine::rules::command::Settlement;
use crate::error::Fault;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::limits;

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
        slot: oneshot::Sender<Result<Answer, Unavailable>>,
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
    /// Look at the clock again.
    Wake,
    Close {
        slot: oneshot::Sender<()>,
    },
}

/// Where a command's answer goes.
pub(crate) type ReplySlot = oneshot::Sender<Result<Parcel, Unavailable>>;

/// A request, and its room in the inbox until the thread has taken it.
pub(crate) struct Posted {
    pub(crate) request: Request,
    _room: Option<OwnedSemaphorePermit>,
}

/// The handle by which requests get to the thread that writes. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Inbox {
    sender: mpsc::Sender<Posted>,
    places: Arc<Semaphore>,
    ended: Arc<SetOnce<Unavailable>>,
}

/// The thread's end of the inbox.
pub(crate) struct Intake {
    receiver: mpsc::Receiver<Posted>,
    /// A request that was looked for before it was asked for.
    next: Option<Posted>,
    ended: Arc<SetOnce<Unavailable>>,
}

impl Drop for Intake {
    /// However the thread ended: nobody waits for an answer that cannot come.
    fn drop(&mut self) {
        self.end(Unavailable::Closed);
    }
}

/// Makes an inbox.
pub(crate) fn inbox() -> (Inbox, Intake) {
    let (sender, receiver) = mpsc::channel();
    let ended = Arc::new(SetOnce::new());
    let places = Arc::new(Semaphore::new(limits::INBOX_MAX));
    (Inbox { sender, places, ended: ended.clone() }, Intake { receiver, next: None, ended })
}

impl Intake {
    /// Waits for a request, at most so long.
    pub(crate) fn wait(&mut self, patience: Option<Duration>) -> Result<Posted, RecvTimeoutError> {
        match (self.next.take(), patience) {
            (Some(posted), _) => Ok(posted),
            (None, Some(patience)) => self.receiver.recv_timeout(patience),
            (None, None) => self.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    /// The next request, if one waits.
    pub(crate) fn take(&mut self) -> Option<Posted> {
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
    /// Posts a request, waiting for room if the inbox is full. A request with large bodies takes more room.
    pub(crate) async fn post(&self, request: Request) -> Result<(), Unavailable> {
        let places = match &request {
            Request::Command { command, .. } => 1 + command.bytes() / limits::INBOX_PLACE_BYTES,
            _ => 1,
        };
        let places = u32::try_from(places.min(limits::INBOX_MAX)).unwrap_or(1);
        let room = self.places.clone().acquire_many_owned(places).await;
        let room = room.expect("the inbox never takes its places away");
        let posted = Posted { request, _room: Some(room) };
        match self.sender.send(posted) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.why_ended().await),
        }
    }

    /// Posts a command and waits for its answer.
    pub(crate) async fn ask(&self, command: Command, wait: Option<Duration>) -> Result<Reply, Unavailable> {
        let (slot, answer) = oneshot::channel();
        self.post(Request::Command { command, slot, wait }).await?;
        match answer.await {
            Ok(parcel) => Ok(parcel?.open()),
            Err(_) => Err(self.why_ended().await),
        }
    }

    /// Asks to look something up.
    pub(crate) async fn query(&self, query: Query) -> Result<Answer, Unavailable> {
        let (slot, answer) = oneshot::channel();
        self.post(Request::Query { query, slot }).await?;
        match answer.await {
            Ok(answer) => answer,
            Err(_) => Err(self.why_ended().await),
        }
    }

    /// Posts without waiting for a place: for what is given back, of which there is never more than was handed out.
    pub(crate) fn post_at_once(&self, request: Request) {
        let _ = self.sender.send(Posted { request, _room: None });
    }

    /// Why there is no answer: the thread that writes says so when it ends.
    pub(crate) async fn why_ended(&self) -> Unavailable {
        self.ended.wait().await.clone()
    }
}

/// An answer on its way. If nobody opens it, because its receiver has gone, the messages in it are given back
/// uncounted.
pub(crate) struct Parcel {
    reply: Option<Reply>,
    queue: Option<QueueName>,
    inbox: Inbox,
}

/// An answer that waits for the commit, and the queue whose messages it may carry.
pub(crate) struct Unsealed {
    pub(crate) reply: Reply,
    pub(crate) queue: Option<QueueName>,
}

impl Unsealed {
    pub(crate) fn seal(self, inbox: &Inbox) -> Parcel {
        Parcel { reply: Some(self.reply), queue: self.queue, inbox: inbox.clone() }
    }
}

impl Parcel {
    /// Takes the answer out.
    pub(crate) fn open(mut self) -> Reply {
        self.reply.take().expect("a parcel is opened once")
    }

    fn give_back(&self, queue: &QueueName, handed: &Handed) {
        let command = release(queue, handed);
        self.inbox.post_at_once(Request::GiveBack(command));
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        let Some(queue) = &self.queue else { return };
        match &self.reply {
            // Last first, so that none of a run waits behind one that was given back before it.
            Some(Reply::Receive(Ok(handed))) => {
                handed.iter().rev().for_each(|handed| self.give_back(queue, handed));
            }
            Some(Reply::Take(Ok(Some(taken)))) => {
                let command = Command::CloseTaken { queue: queue.clone(), token: taken.token };
                self.inbox.post_at_once(Request::GiveBack(command));
            }
            _ => {}
        }
    }
}

fn release(queue: &QueueName, handed: &Handed) -> Command {
    Command::Settle {
        queue: queue.clone(),
        token: handed.token,
        sequence: handed.sequence,
        delivery_count: handed.record.delivery_count,
        settlement: Settlement::Release,
    }
}
