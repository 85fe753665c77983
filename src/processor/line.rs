//! The slots of handlers, and what was received ahead of them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::limits;
use crate::mutex::Mutex;
use crate::processor::pace::Pace;
use crate::processor::pool::Consumer;

/// The slots of handlers, and the jobs that were received ahead of them, oldest first. All that is in hand is counted,
/// until it is settled, but what has a place beside the slots.
///
/// # Dropping
/// What waits is given back uncounted as soon as the line is [closed](Line::close).
pub(crate) struct JobLine<C: Consumer> {
    consumer: Arc<C>,
    state: Mutex<JobLineState<C::Begun>>,
    /// Rung when there may be room for another receive.
    room: Notify,
    /// Rung when something waits that has not waited before.
    filled: Notify,
}

struct JobLineState<J> {
    waiting: VecDeque<Waiting<J>>,
    /// Bytes of the bodies that wait.
    bytes: usize,
    /// Slots that nobody has.
    free: usize,
    /// Places beside the slots that nobody has.
    beside: usize,
    in_hand: usize,
    in_hand_max: usize,
    /// Jobs whose handlers have ended, and which no command has settled yet; for a moment fewer than none, when a settlement
    /// is noted before its job is counted.
    unsettled: isize,
    /// Jobs that commands were sent to settle since the last receive was.
    freed: usize,
    /// Whether the last receive brought less than its maximum.
    came_short: bool,
    ahead_max: usize,
    pace: Pace,
    is_closed: bool,
}

/// A job that waits for a slot.
struct Waiting<J> {
    job: J,
    bytes: usize,
    /// Since when it waits, in the clock's elapsed time.
    since: Duration,
}

/// A job's place among those in hand, until it is settled.
pub(crate) struct JobPlace<C: Consumer> {
    line: Arc<JobLine<C>>,
    /// None once it is given back.
    kind: Option<PlaceKind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaceKind {
    /// In hand, and nothing else.
    InHand,
    /// It has a slot, until it is settled.
    Slot,
    /// It has a place beside the slots.
    Beside,
}

/// A slot, whose handler goes on with what waits.
///
/// # Dropping
/// A job whose handler was not called is given back uncounted.
pub(crate) struct Runner<C: Consumer> {
    line: Arc<JobLine<C>>,
    /// What is to begin next.
    job: Option<C::Begun>,
    has_slot: bool,
}

/// A job that may begin at once, with its slot.
pub(crate) struct Ready<C: Consumer> {
    pub(crate) place: JobPlace<C>,
    pub(crate) runner: Runner<C>,
}

impl<C: Consumer> JobLine<C> {
    /// A line for so many handlers at once.
    pub(crate) fn new(consumer: Arc<C>, concurrency: usize) -> Arc<JobLine<C>> {
        let ahead_max = consumer.ahead_max();
        let state = JobLineState {
            waiting: VecDeque::new(),
            bytes: 0,
            free: concurrency,
            beside: concurrency,
            in_hand: 0,
            in_hand_max: concurrency + limits::GROUPS_AHEAD_MAX * ahead_max,
            unsettled: 0,
            freed: 0,
            came_short: false,
            ahead_max,
            pace: Pace::default(),
            is_closed: false,
        };
        Arc::new(JobLine { consumer, state: Mutex::new(state), room: Notify::new(), filled: Notify::new() })
    }

    /// Waits until it is time for another receive, and says for how many jobs.
    pub(crate) async fn room(&self) -> usize {
        loop {
            if let Some(room) = self.state.lock().take_room() {
                return room;
            }
            self.room.notified().await;
        }
    }

    /// Notes that a receive of up to `max` jobs was answered with so many.
    pub(crate) fn note_answer(&self, (received, max): (usize, usize), elapsed: Duration) {
        let mut state = self.state.lock();
        let ahead_max = state.ahead_max;
        state.pace.note_answer(elapsed, ahead_max);
        state.came_short = received < max;
    }

    /// Notes that commands were sent to settle so many.
    pub(crate) fn note_settled(&self, count: usize) {
        self.change(|state| {
            state.unsettled -= isize::try_from(count).unwrap_or(isize::MAX);
            state.freed += count;
        });
    }

    /// Whether something waits for a slot.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.state.lock().waiting.is_empty()
    }

    /// A slot for a job until it is settled, if there is one.
    pub(crate) fn slot(self: &Arc<JobLine<C>>) -> JobPlace<C> {
        let mut state = self.state.lock();
        state.free = state.free.checked_sub(1).expect("no more is taken than there are free slots");
        state.in_hand += 1;
        JobPlace { line: self.clone(), kind: Some(PlaceKind::Slot) }
    }

    /// A place beside the slots, as long as there is one: the slot stays free for another job.
    pub(crate) fn beside(self: &Arc<JobLine<C>>) -> JobPlace<C> {
        {
            let mut state = self.state.lock();
            if let Some(beside) = state.beside.checked_sub(1) {
                state.beside = beside;
                return JobPlace { line: self.clone(), kind: Some(PlaceKind::Beside) };
            }
        }
        self.slot()
    }

    /// Lets jobs begin for which there is a slot; the others wait. What comes when it is closed is given back.
    pub(crate) fn add(
        self: &Arc<JobLine<C>>,
        jobs: Vec<(usize, C::Begun)>,
        elapsed: Duration,
    ) -> Vec<Ready<C>> {
        let mut state = self.state.lock();
        if state.is_closed {
            drop(state);
            jobs.into_iter().for_each(|(_, job)| self.consumer.give_back(job));
            return Vec::new();
        }
        state.in_hand += jobs.len();
        let mut begun = Vec::with_capacity(jobs.len().min(state.free));
        let was_empty = state.waiting.is_empty();
        for (bytes, job) in jobs {
            // What waits already goes first.
            if state.free > 0 && state.waiting.is_empty() {
                state.free -= 1;
                let runner = Runner { line: self.clone(), job: Some(job), has_slot: true };
                begun.push(Ready { place: self.in_hand(), runner });
            } else {
                state.bytes += bytes;
                state.waiting.push_back(Waiting { job, bytes, since: elapsed });
            }
        }
        if was_empty && !state.waiting.is_empty() {
            self.filled.notify_one();
        }
        begun
    }

    /// Waits until something waits for a slot.
    pub(crate) async fn filled(&self) {
        while !self.has_waiting() {
            self.filled.notified().await;
        }
    }

    /// Gives back uncounted what waits since before an instant: handlers have become slow.
    pub(crate) fn give_back_before(&self, until: Duration) {
        let late = self.change(|state| {
            let mut late = Vec::new();
            while state.waiting.front().is_some_and(|first| first.since <= until) {
                late.extend(state.pop());
                state.in_hand -= 1;
            }
            if !late.is_empty() {
                state.pace.slow_down();
            }
            late
        });
        late.into_iter().for_each(|job| self.consumer.give_back(job));
    }

    /// Lets nothing begin any more, and gives back uncounted what waits.
    pub(crate) fn close(&self) {
        let waiting = {
            let mut state = self.state.lock();
            state.is_closed = true;
            state.bytes = 0;
            state.in_hand -= state.waiting.len();
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(|waiting| self.consumer.give_back(waiting.job));
    }

    /// Whether nothing is to begin any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Gives places of this line back, all at once.
    pub(crate) fn give_back_all(&self, places: Vec<JobPlace<C>>) {
        self.change(|state| {
            for mut place in places {
                place.kind.take().into_iter().for_each(|kind| state.give_back(kind));
            }
        });
    }

    fn in_hand(self: &Arc<JobLine<C>>) -> JobPlace<C> {
        JobPlace { line: self.clone(), kind: Some(PlaceKind::InHand) }
    }

    /// Changes what is there, and notifies who waits for room if there is some now.
    fn change<T>(&self, change: impl FnOnce(&mut JobLineState<C::Begun>) -> T) -> T {
        let mut state = self.state.lock();
        let (before, changed) = (state.room(), change(&mut state));
        if before == 0 && state.room() > 0 {
            self.room.notify_one();
        }
        changed
    }
}

impl<J> JobLineState<J> {
    /// How many jobs to ask for, if it is time to ask.
    fn take_room(&mut self) -> Option<usize> {
        let room = self.room();
        if room > 0 {
            self.freed = 0;
        }
        (room > 0).then_some(room)
    }

    /// How many jobs to ask for; 0 as long as enough waits.
    fn room(&self) -> usize {
        let (ahead, waiting) = (self.pace.ahead(), self.waiting.len());
        let enough = match self.came_short && ahead > 0 {
            // What these have freed is handled while the others are settled.
            true if self.freed >= limits::AHEAD_GROUP_FREED => usize::MAX,
            // Nothing else was ready: what is in hand is settled first, so that what it frees is handed out with it.
            true if self.unsettled > 0 => return 0,
            true => 0,
            false => ahead / 2,
        };
        if waiting > enough || self.bytes > limits::RECEIVE_BYTES_MAX / 2 {
            return 0;
        }
        (self.free + ahead).min(self.in_hand_max.saturating_sub(self.in_hand)).min(limits::AHEAD_GROUP_MAX)
    }

    fn give_back(&mut self, kind: PlaceKind) {
        match kind {
            PlaceKind::InHand => self.in_hand -= 1,
            PlaceKind::Slot => (self.in_hand, self.free) = (self.in_hand - 1, self.free + 1),
            PlaceKind::Beside => self.beside += 1,
        }
    }

    fn pop(&mut self) -> Option<J> {
        let Waiting { job, bytes, .. } = self.waiting.pop_front()?;
        self.bytes -= bytes;
        Some(job)
    }
}

impl<C: Consumer> JobPlace<C> {
    /// Whether its job was handled by a [`Runner`].
    pub(crate) fn is_of_runner(&self) -> bool {
        self.kind == Some(PlaceKind::InHand)
    }
}

impl<C: Consumer> Drop for JobPlace<C> {
    fn drop(&mut self) {
        if let Some(kind) = self.kind.take() {
            self.line.change(|state| state.give_back(kind));
        }
    }
}

impl<C: Consumer> Runner<C> {
    /// The job whose handler is called now.
    pub(crate) fn begin(&mut self) -> C::Begun {
        self.job.take().expect("a runner goes on only with another job")
    }

    /// Notes that a handler has ended, and whether its job is to be settled; takes what waits for longest, and says its place.
    /// None when nothing does: then the slot is free.
    pub(crate) fn next(&mut self, is_unsettled: bool) -> Option<JobPlace<C>> {
        let line = &self.line;
        self.job = line.change(|state| {
            state.pace.note_ended();
            state.unsettled += isize::from(is_unsettled);
            let next = state.pop();
            state.free += usize::from(next.is_none());
            next
        });
        self.has_slot = self.job.is_some();
        self.has_slot.then(|| line.in_hand())
    }
}

impl<C: Consumer> Drop for Runner<C> {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            self.line.consumer.give_back(job);
        }
        if self.has_slot {
            self.line.change(|state| state.free += 1);
        }
    }
}
