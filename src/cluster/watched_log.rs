//! A log of which is noted when its last entry came, by a clock that nobody sets: a node that takes over knows from it how much
//! time has passed since then, whatever the wall clocks of the nodes show.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::Clock;
use crate::engine::log::EachEntry;
use crate::engine::log::Entry;
use crate::engine::log::Log;
use crate::engine::log::PassedTime;
use crate::error::Fault;
use crate::limits;
use crate::mutex::Mutex;

/// A log whose last entry is watched.
pub(crate) struct WatchedLog<L> {
    log: Arc<L>,
    clock: Arc<dyn Clock>,
    last: Mutex<LastEntry>,
    /// When the last entry that the log has taken from here was offered to it.
    taken: watch::Sender<Option<Duration>>,
}

/// The last entry of a log, and when what was known of it, in elapsed time.
#[derive(Clone, Copy, Debug, Default)]
struct LastEntry {
    position: u64,
    /// When the log was last known to end before it.
    absent_at: Option<Duration>,
    /// When it was first known to be there.
    there_at: Duration,
    /// When nothing was behind it, as far as is known.
    end_at: Option<Duration>,
}

impl LastEntry {
    /// Notes that the log had no entry behind one at an instant, and has reached to it at another.
    fn see(&mut self, position: u64, end_at: Duration, there_at: Duration) {
        if position > self.position {
            *self = LastEntry { position, absent_at: self.end_at, there_at, end_at: Some(end_at) };
        } else if position == self.position {
            self.end_at = self.end_at.max(Some(end_at));
        }
    }
}

impl<L: Log> WatchedLog<L> {
    pub(crate) fn new(log: Arc<L>, clock: Arc<dyn Clock>) -> WatchedLog<L> {
        WatchedLog { log, clock, last: Mutex::default(), taken: watch::Sender::default() }
    }

    /// Waits until the log has taken an entry from here that was offered to it no longer ago than this, or since this is asked: nobody
    /// else had it then. What has taken a log longer than NATS may take says nothing of the present any more.
    pub(crate) async fn taken_within(&self, age: Duration) {
        let from = self.clock.elapsed().saturating_sub(age);
        let oldest = || self.clock.elapsed().saturating_sub(age.max(limits::NATS_ANSWER));
        let is_young = |at: &Option<Duration>| at.is_some_and(|at| at >= from.max(oldest()));
        // It ends with this log.
        let _ = self.taken.subscribe().wait_for(is_young).await;
    }

    /// The instant, for [`WatchedLog::has_taken_since`].
    pub(crate) fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Whether the log has taken an entry from here that was offered to it since an instant: nobody else had it then.
    pub(crate) fn has_taken_since(&self, at: Duration) -> bool {
        self.taken.borrow().is_some_and(|taken| taken >= at)
    }

    /// What is known of the time since the entry at a position was appended, if it is the last.
    pub(crate) fn passed_since(&self, position: u64) -> PassedTime {
        let (last, now) = (*self.last.lock(), self.clock.elapsed());
        if position == 0 || last.position != position {
            return PassedTime::default();
        }
        PassedTime {
            least: now.saturating_sub(last.there_at),
            most: last.absent_at.map(|at| now.saturating_sub(at)),
        }
    }
}

impl<L: Log> Log for WatchedLog<L> {
    fn append(&self, entry: Entry<'_>) -> Result<(), Fault> {
        let asked = self.clock.elapsed();
        self.log.append(entry)?;
        let there_at = self.clock.elapsed();
        let mut last = self.last.lock();
        last.see(entry.position - 1, asked, asked);
        last.see(entry.position, asked, there_at);
        drop(last);
        self.taken.send_replace(Some(asked));
        Ok(())
    }

    fn read_from(&self, position: u64, each: &mut EachEntry<'_>) -> Result<(), Fault> {
        // Where the log ends is asked after this instant.
        let (asked, mut end) = (self.clock.elapsed(), position);
        self.log.read_from(position, &mut |entry| {
            end = entry.position;
            each(entry)
        })?;
        self.last.lock().see(end, asked, self.clock.elapsed());
        Ok(())
    }

    fn trim(&self, through: u64) -> Result<(), Fault> {
        self.log.trim(through)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::engine::log::SharedLog;
    use crate::engine::tests::log::Epoch;
    use crate::engine::tests::log::conformance::entry;
    use crate::engine::tests::log::server::Servers;
    use crate::testing::ManualClock;

    fn seconds(least: u64, most: Option<u64>) -> PassedTime {
        PassedTime { least: Duration::from_secs(least), most: most.map(Duration::from_secs) }
    }

    /// A log that takes so long for an entry.
    struct SlowLog(ManualClock, Mutex<Duration>);

    impl Log for SlowLog {
        fn append(&self, _: Entry<'_>) -> Result<(), Fault> {
            self.0.advance(*self.1.lock());
            Ok(())
        }

        fn read_from(&self, _: u64, _: &mut EachEntry<'_>) -> Result<(), Fault> {
            Ok(())
        }

        fn trim(&self, _: u64) -> Result<(), Fault> {
            Ok(())
        }
    }

    #[test]
    fn an_entry_that_is_offered_once_it_is_asked_for_is_young_although_the_log_is_slow() {
        let (clock, lease) = (ManualClock::default(), Duration::from_secs(1));
        let slow = Arc::new(SlowLog(clock.clone(), Mutex::new(3 * lease)));
        let log = WatchedLog::new(slow.clone(), Arc::new(clock.clone()));
        let append = |position| log.append(Entry { position, bytes: &[] }).unwrap();
        clock.advance(Duration::from_secs(60));
        let mut taken = Box::pin(log.taken_within(lease));
        assert!(taken.as_mut().now_or_never().is_none(), "nothing was taken yet");
        append(1);
        assert!(taken.now_or_never().is_some());
        assert!(log.taken_within(lease).now_or_never().is_none(), "it was offered three leases ago");
        *slow.1.lock() = limits::NATS_ANSWER + lease;
        let mut taken = Box::pin(log.taken_within(lease));
        assert!(taken.as_mut().now_or_never().is_none());
        append(2);
        assert!(taken.now_or_never().is_none(), "who has the partition by now, nobody knows");
    }

    #[test]
    fn an_entry_says_nothing_of_who_has_asked_after_it_was_offered() {
        let clock = ManualClock::default();
        let slow = Arc::new(SlowLog(clock.clone(), Mutex::new(Duration::from_secs(1))));
        let log = WatchedLog::new(slow, Arc::new(clock.clone()));
        clock.advance(Duration::from_secs(60));
        let asked = log.now();
        assert!(!log.has_taken_since(asked));
        log.append(Entry { position: 1, bytes: &[] }).unwrap();
        assert!(log.has_taken_since(asked));
        assert!(!log.has_taken_since(asked + Duration::from_millis(500)), "it was on its way then");
    }

    #[test]
    fn an_entry_that_was_seen_to_come_is_as_old_as_a_clock_that_nobody_sets_says() {
        let (servers, clock) = (Servers::sound(), ManualClock::default());
        let node = || WatchedLog::new(Arc::new(SharedLog::new(servers.clone())), Arc::new(clock.clone()));
        let (owner, follower) = (node(), node());
        let append = |position| {
            let bytes = entry(position, Epoch { number: 1, holder: 1 }, 100);
            owner.append(Entry { position, bytes: &bytes }).unwrap();
        };
        let read = |node: &WatchedLog<_>, from| node.read_from(from, &mut |_| Ok(())).unwrap();
        append(1);
        append(2);
        read(&follower, 0);
        clock.advance(Duration::from_secs(10));
        assert_eq!(follower.passed_since(2), seconds(10, None), "it was there when the node began to read");
        read(&follower, 2);
        clock.advance(Duration::from_secs(1));
        append(3);
        clock.advance(Duration::from_secs(1));
        read(&follower, 2);
        clock.advance(Duration::from_secs(5));
        assert_eq!(follower.passed_since(3), seconds(5, Some(7)));
        assert_eq!(owner.passed_since(3), seconds(6, Some(6)), "whoever appends it knows exactly");
        read(&follower, 3);
        assert_eq!(follower.passed_since(3), seconds(5, Some(7)), "to look again tells nothing of it");
        assert_eq!(follower.passed_since(2), PassedTime::default(), "only of the last entry it is known");
        assert_eq!(node().passed_since(3), PassedTime::default());
    }
}
