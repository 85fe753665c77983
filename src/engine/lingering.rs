//! Whether the hot loop looks for the next request for a moment before it sleeps.
//!
//! Whoever gets an answer often asks the next thing at once. To put a thread to sleep and to wake it takes longer than that, on a
//! virtual machine several times as long, and the disk is idle meanwhile. So the loop lingers, but only where it would have been
//! worth it many times in a row: who asks now and then pays nothing for it.

use std::time::Duration;

use crate::limits;

/// From how many short waits in a row one lingers.
const WORTH_IT: u8 = 8;

/// What the last waits say of the next one.
#[derive(Default)]
pub(crate) struct Lingering {
    /// How many of the last waits were short, as far as that matters.
    short_waits: u8,
}

impl Lingering {
    /// The next request, if lingering is worth it and it comes in that moment. Others may run between two looks.
    pub(crate) fn find<T>(&self, mut take: impl FnMut() -> Option<T>) -> Option<T> {
        if self.short_waits < WORTH_IT {
            return None;
        }
        for _ in 0..limits::LINGER_LOOKS {
            let found = take();
            if found.is_some() {
                return found;
            }
            std::thread::yield_now();
        }
        None
    }

    /// Notes after how long a request came, or something was due, when it has slept.
    pub(crate) fn note(&mut self, waited: Duration) {
        self.short_waits = match waited <= limits::LINGER_WAIT {
            true => (self.short_waits + 1).min(WORTH_IT),
            false => 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that has had so many short waits.
    fn after_short_waits(count: u8) -> Lingering {
        let mut lingering = Lingering::default();
        (0..count).for_each(|_| lingering.note(limits::LINGER_WAIT));
        lingering
    }

    /// How often is looked before it sleeps.
    fn looks(lingering: &Lingering) -> usize {
        let mut looks = 0;
        let found = lingering.find(|| {
            looks += 1;
            None::<()>
        });
        assert!(found.is_none());
        looks
    }

    #[test]
    fn it_lingers_once_requests_follow_each_other_and_no_longer_when_they_do_not() {
        assert_eq!(looks(&after_short_waits(WORTH_IT - 1)), 0);
        let mut lingering = after_short_waits(u8::MAX);
        assert_eq!(looks(&lingering), limits::LINGER_LOOKS);
        lingering.note(limits::LINGER_WAIT + Duration::from_nanos(1));
        assert_eq!(looks(&lingering), 0);
    }

    #[test]
    fn what_comes_while_it_lingers_is_found() {
        let mut coming = [None, None, Some("request")].into_iter();
        let found = after_short_waits(WORTH_IT).find(|| coming.next().flatten());
        assert_eq!(found, Some("request"));
    }
}
