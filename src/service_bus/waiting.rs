//! Links that are sent nothing for now because their prefetch windows are full: operators see it where messages wait
//! because of it.

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::id::QueueName;
use crate::mutex::Mutex;

/// Names a link that waits, as long as the process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaitingLink(u64);

/// What the links of a queue wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowWait {
    /// How many messages the window has; the largest of those of all links.
    pub(crate) messages: usize,
    /// Since when the first of them waits.
    pub(crate) since: Timestamp,
}

/// The links that wait; as many as there are at most.
#[derive(Debug, Default)]
pub(crate) struct FullWindows {
    known: Mutex<WindowWaits>,
}

#[derive(Debug, Default)]
struct WindowWaits {
    links_ever: u64,
    by_link: BTreeMap<(QueueName, WaitingLink), WindowWait>,
}

impl FullWindows {
    /// Notes that a link of a queue waits.
    pub(crate) fn note(&self, queue: &QueueName, window: WindowWait) -> WaitingLink {
        let mut known = self.known.lock();
        known.links_ever += 1;
        let link = WaitingLink(known.links_ever);
        known.by_link.insert((queue.clone(), link), window);
        link
    }

    /// Notes that a link does not wait any more.
    pub(crate) fn forget(&self, queue: &QueueName, link: WaitingLink) {
        self.known.lock().by_link.remove(&(queue.clone(), link));
    }

    /// What the links of a queue wait for, if any does.
    pub(crate) fn of(&self, queue: &QueueName) -> Option<WindowWait> {
        let known = self.known.lock();
        let of_queue =
            known.by_link.range((queue.clone(), WaitingLink(0))..).take_while(|((of, _), _)| of == queue);
        of_queue.map(|(_, window)| *window).reduce(|one, other| WindowWait {
            messages: one.messages.max(other.messages),
            since: one.since.min(other.since),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_has_a_full_window_as_long_as_one_of_its_links_waits() {
        let (windows, queue) = (FullWindows::default(), QueueName::new("q").unwrap());
        let window = |messages, at| WindowWait { messages, since: Timestamp::from_millis(at) };
        let one = windows.note(&queue, window(3, 20));
        let other = windows.note(&queue, window(1, 10));
        windows.note(&QueueName::new("r").unwrap(), window(9, 1));
        assert_eq!(windows.of(&queue), Some(window(3, 10)));
        windows.forget(&queue, one);
        assert_eq!(windows.of(&queue), Some(window(1, 10)));
        windows.forget(&queue, other);
        assert_eq!(windows.of(&queue), None);
    }
}
