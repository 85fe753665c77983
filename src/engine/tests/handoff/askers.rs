//! Who asks: each is answered, and holds every answer against what is on disk.

use std::future::Future;
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use shuttle::future::block_on;
use tokio::sync::broadcast;
use tokio::sync::oneshot;

use super::disk::Disk;
use super::hot_loop::HotLoop;
use super::inbox::BackupOrder;
use super::inbox::Inbox;
use super::inbox::Request;
use super::left_answers::LeftAnswers;
use super::letter::WorkWait;
use super::letter::letter;
use super::threads::spawn;
use super::verbs::Accept;
use super::verbs::TakeCounted;
use crate::engine::query::Query;
use crate::engine::rules::effect::Event;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::verbs::CloseWorkflow;
use crate::engine::rules::waits_for::WaitsFor;
use crate::error::ReceiveRefusal;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::limits;
use crate::token::LockToken;

/// The bytes of a body that takes a quarter of the inbox.
const LARGE: usize = limits::INBOX_MAX / 4 * limits::INBOX_PLACE_BYTES;

/// One who asks, one thing after another.
pub(crate) struct Asker {
    inbox: Inbox,
    disk: Arc<Disk>,
    events: broadcast::Receiver<Event>,
    /// The position of the last answer.
    last: u64,
    /// The position of the last event.
    described: u64,
}

impl Asker {
    pub(crate) fn new(hot_loop: &HotLoop) -> Asker {
        let (inbox, disk) = (hot_loop.inbox.clone(), hot_loop.disk.clone());
        Asker { inbox, disk, events: hot_loop.events.subscribe(), last: 0, described: 0 }
    }

    /// Sends messages, each of which takes a quarter of the inbox.
    pub(crate) fn send(&mut self, count: usize) -> Result<(), Unavailable> {
        let command = Accept { bytes: count * LARGE };
        let answer = block_on(self.inbox.ask(command, None)).map_err(|why| self.refused(why))?;
        let receipts = answer.expect("nothing is refused here");
        let [Receipt::Accepted(sequence)] = receipts[..] else { panic!("other receipts: {receipts:?}") };
        let position = sequence.get();
        assert!(position <= self.disk.durable(), "an answer leaves after its commit");
        assert!(position >= self.last, "whoever asks later is answered of a later state");
        self.last = position;
        self.listen();
        assert!(position <= self.described, "who has an answer can find its events");
        Ok(())
    }

    /// Hears what was told since.
    pub(crate) fn listen(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            let position = event.sequence_number.unwrap().get();
            assert!(position <= self.disk.durable(), "an event leaves after its commit");
            assert!(position >= self.described, "events leave in order");
            self.described = position;
        }
    }

    pub(crate) fn look(&mut self) -> Result<(), Unavailable> {
        let looked = block_on(self.inbox.look(|slot| Query::NextDue { slot }));
        let seen = looked.map_err(|why| self.refused(why))?.expect("there is always something due");
        assert!(seen.as_millis() <= self.disk.durable(), "a look shows what is on disk");
        assert!(seen.as_millis() >= self.last, "a look shows what was acknowledged before");
        self.last = seen.as_millis();
        Ok(())
    }

    pub(crate) fn back_up(&mut self) {
        let (slot, answer) = oneshot::channel();
        let order = Box::new(BackupOrder { target: PathBuf::new(), room: None, slot });
        let posted = block_on(self.inbox.post(Request::Backup(order), 0));
        if let (Ok(_pending), Ok(Ok(copied))) = (posted, block_on(answer)) {
            assert!(copied >= self.last, "a backup has what was acknowledged before");
        }
    }

    /// Asks for a workflow, and goes before it is there, or while it comes.
    pub(crate) fn take_and_go(&mut self) {
        let token = LockToken::new(1, [0; 12]);
        let take = TakeCounted { queue: queue(), token, disk: self.disk.clone() };
        let (asked, answer) = letter(take, None, |command| self.inbox.give_back(command));
        let posted = block_on(self.inbox.post(Request::Ask(asked), 0));
        shuttle::thread::yield_now();
        drop((posted, answer));
    }

    /// Asks for a workflow, goes before it is there or while it comes, and waits until it is given back; and so does somebody else.
    pub(crate) fn leave_and_wait(&mut self) {
        let take = TakeCounted { queue: queue(), token: LockToken::new(1, [1; 12]), disk: self.disk.clone() };
        let work_wait = WorkWait {
            waits_for: WaitsFor::Queue(queue()),
            wait: Duration::ZERO,
            is_nothing: |answer| answer.as_ref().is_ok_and(Option::is_none),
            nothing: || Ok(None),
            too_many: |waiting| Err(ReceiveRefusal::TooManyWaiting(waiting)),
            token: None,
        };
        let left = Arc::new(LeftAnswers::default());
        {
            let mut asking = pin!(self.inbox.ask_or_leave(take, work_wait, &left));
            let polled = block_on(poll_fn(|context| Poll::Ready(asking.as_mut().poll(context))));
            if let Poll::Ready(Ok(Ok(Some(taken)))) = polled {
                // It was there at once: then it is the asker's.
                self.inbox.give_back(CloseWorkflow { queue: queue(), token: taken.token }.into());
            }
            shuttle::thread::yield_now();
        }
        let waited_for = left.clone();
        let other = spawn("asker", move || block_on(waited_for.end(|| ()))).unwrap();
        block_on(left.end(|| ()));
        other.join().unwrap();
    }

    /// Nobody is refused before the disk fails, and then everybody hears that it did.
    fn refused(&self, why: Unavailable) -> Unavailable {
        assert!(self.disk.has_failed(), "refused by an engine that goes on: {why}");
        assert!(matches!(why, Unavailable::Stopped(_)), "the fault is named: {why}");
        why
    }
}

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}
