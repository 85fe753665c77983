//! The prefetch windows of links that receive, as everybody sees them who sends, settles or renews: over the link, or by
//! token from any connection.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::clock::whole_millis;
use crate::engine::Client;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::limits;
use crate::mutex::Mutex;
use crate::service_bus::entity::Entity;
use crate::service_bus::meters::Meters;
use crate::service_bus::waiting::WaitingLink;
use crate::service_bus::waiting::WindowWait;
use crate::service_bus::window::DeliveryPlace;
use crate::service_bus::window::PrefetchWindow;

/// What messages are of: a queue, or its dead letters.
type WindowSource = (QueueName, bool);

/// The windows that links have had lately, by which new ones start.
#[derive(Default)]
pub(crate) struct LastWindows {
    by_source: Mutex<HashMap<WindowSource, LastWindow>>,
}

/// The last window of a queue.
#[derive(Clone, Copy, Debug)]
struct LastWindow {
    messages: usize,
    until_ms: u64,
}

impl LastWindows {
    /// The window with which a new link starts.
    fn get(&self, source: &WindowSource, now_ms: u64) -> Option<usize> {
        self.by_source.lock().get(source).filter(|last| now_ms < last.until_ms).map(|last| last.messages)
    }

    /// Notes a window; those that are of no use any more are forgotten, so that there is at most one for each queue.
    fn note(&self, source: &WindowSource, messages: usize, (now_ms, until_ms): (u64, u64)) {
        let mut windows = self.by_source.lock();
        if !windows.contains_key(source) {
            windows.retain(|_, last| now_ms < last.until_ms);
        }
        windows.insert(source.clone(), LastWindow { messages, until_ms });
    }
}

/// The window of a link.
pub(crate) struct LinkWindow {
    client: Client,
    source: WindowSource,
    lock_ms: u64,
    last_windows: Arc<LastWindows>,
    meters: Meters,
    inside: Mutex<WindowState>,
    /// The client has sent something: there may be room.
    activity: Notify,
}

struct WindowState {
    window: PrefetchWindow,
    is_counted: bool,
    is_logged: bool,
    is_closed: bool,
    waiting: Option<WaitingLink>,
}

/// The place of a delivery in the window of its link.
#[derive(Clone)]
pub(crate) struct WindowPlace {
    window: Arc<LinkWindow>,
    place: DeliveryPlace,
}

impl LinkWindow {
    pub(crate) fn new(
        client: &Client,
        entity: &Entity,
        last_windows: &Arc<LastWindows>,
        meters: &Meters,
    ) -> LinkWindow {
        let source = (entity.name().clone(), entity.is_dead_letters);
        let (now_ms, lock_ms) = (whole_millis(client.elapsed()), whole_millis(entity.options.lock));
        let window = PrefetchWindow::new(now_ms, lock_ms, last_windows.get(&source, now_ms));
        LinkWindow {
            client: client.clone(),
            source,
            lock_ms,
            last_windows: last_windows.clone(),
            meters: meters.clone(),
            inside: Mutex::new(WindowState {
                window,
                is_counted: false,
                is_logged: false,
                is_closed: false,
                waiting: None,
            }),
            activity: Notify::new(),
        }
    }

    /// How many more messages may be sent to a client that gives so much credit.
    pub(crate) fn room(&self, credit: usize) -> usize {
        self.with(|window, now_ms| {
            window.note_credit(credit);
            window.room(now_ms)
        })
    }

    /// Whether a message may be sent.
    pub(crate) fn admits(&self, message: SequenceNumber, times_lost: usize) -> bool {
        self.with(|window, now_ms| window.admits(now_ms, message, times_lost))
    }

    /// Takes a place for a message that is locked until then, if it may be sent.
    pub(crate) fn enter(
        self: &Arc<LinkWindow>,
        message: SequenceNumber,
        times_lost: usize,
        until_ms: u64,
    ) -> Option<WindowPlace> {
        let place = self.with(|window, now_ms| {
            window.admits(now_ms, message, times_lost).then(|| window.add(message, until_ms))
        });
        place.map(|place| WindowPlace { window: self.clone(), place })
    }

    /// When there may be room although the client says nothing, by the engine's clock.
    pub(crate) fn wakes_at_ms(&self) -> Option<u64> {
        self.inside.lock().window.wakes_at()
    }

    /// Waits until the client says something.
    pub(crate) async fn activity(&self) {
        self.activity.notified().await;
    }

    /// Notes whether the client would take more than it is sent. Dead letters keep nobody waiting.
    pub(crate) fn note_waiting(&self, waits: bool) {
        let (queue, is_dead_letters) = &self.source;
        let (mut inside, windows) = (self.inside.lock(), &self.meters.full_windows);
        match inside.waiting {
            Some(link) if !waits => {
                windows.forget(queue, link);
                inside.waiting = None;
            }
            None if waits && !is_dead_letters => {
                let messages = inside.window.size().unwrap_or_default();
                let since = self.client.wall_now();
                inside.waiting = Some(windows.note(queue, WindowWait { messages, since }));
            }
            _ => {}
        }
    }

    /// The link has ended.
    pub(crate) fn close(&self) {
        self.with(|window, now_ms| window.expire(now_ms));
        self.note_waiting(false);
        let mut inside = self.inside.lock();
        inside.is_closed = true;
        if std::mem::take(&mut inside.is_counted) {
            self.meters.note_window_gone();
        }
        self.activity.notify_one();
    }

    fn with<T>(&self, change: impl FnOnce(&mut PrefetchWindow, u64) -> T) -> T {
        let now_ms = whole_millis(self.client.elapsed());
        let mut inside = self.inside.lock();
        let losses_before = inside.window.losses();
        let done = change(&mut inside.window, now_ms);
        let (losses, size) = (inside.window.losses() - losses_before, inside.window.size());
        if let Some(size) = size.filter(|_| !inside.is_closed) {
            self.note(&mut inside, losses, (size, now_ms));
        }
        done
    }

    fn note(&self, inside: &mut WindowState, losses: u64, (size, now_ms): (usize, u64)) {
        if !std::mem::replace(&mut inside.is_counted, true) {
            self.meters.note_window();
        }
        if losses == 0 {
            return;
        }
        self.meters.note_lost_in_buffers(losses);
        let remembered_ms = self.lock_ms.saturating_mul(limits::SERVICE_BUS_WINDOW_KEPT_LOCKS);
        self.last_windows.note(&self.source, size, (now_ms, now_ms.saturating_add(remembered_ms)));
        if !std::mem::replace(&mut inside.is_logged, true) {
            let (queue, is_dead_letters) = &self.source;
            tracing::warn!(
                %queue,
                is_dead_letters,
                "a receiver lets locks run out in its buffer: {losses} so far, so it is sent at most {size} messages ahead for \
                 now; give it less credit (prefetch), or the queue a longer lock"
            );
        }
    }
}

impl WindowPlace {
    /// The client wants to settle the delivery, in time or not.
    pub(crate) fn note_activity(&self) {
        self.window.with(|window, now_ms| window.note_activity(now_ms, self.place));
        self.window.activity.notify_one();
    }

    /// The client has settled its message in time.
    pub(crate) fn note_settled(&self, message: SequenceNumber) {
        self.window.with(|window, now_ms| window.note_settled(now_ms, message));
        self.window.activity.notify_one();
    }

    /// The client has renewed the lock, which it asked for at an instant.
    pub(crate) fn note_renewed(&self, requested_at_ms: u64) {
        let until_ms = requested_at_ms.saturating_add(self.window.lock_ms);
        self.window.with(|window, now_ms| window.note_renewed(now_ms, self.place, until_ms));
        self.window.activity.notify_one();
    }

    /// The message was not sent after all.
    pub(crate) fn take_back(&self) {
        self.window.with(|window, _| window.take_back(self.place));
        self.window.activity.notify_one();
    }
}

impl fmt::Debug for WindowPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "place {} in the window of a link", self.place)
    }
}
