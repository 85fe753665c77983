//! Instants on the engine's two clocks, and what both of them show.
//!
//! Durations run on *engine time*, which only counts what has passed. Given instants are compared with *wall time*, which
//! people set. An instant of one clock is never compared with the other.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::message::KeptBack;

/// What both clocks show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockInstants {
    /// Advances by what has passed, and never runs back.
    pub(crate) engine: Timestamp,
    /// The wall clock, as far as it is believed.
    pub(crate) wall: Timestamp,
}

impl ClockInstants {
    /// Both clocks show the same.
    #[cfg(test)]
    pub(crate) fn same(at: Timestamp) -> ClockInstants {
        ClockInstants { engine: at, wall: at }
    }
}

/// An instant at which something is due, on one of the two clocks. In order, those of engine time come first.
///
/// Its bytes are those of a number whose highest bit says which clock it is of, so that an instant of engine time is
/// written as a [`Timestamp`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Due(u64);

/// Set in an instant of wall time.
const OF_WALL: u64 = 1 << 63;

impl Due {
    /// The first instant of wall time: every instant of engine time is before it.
    pub(crate) const FIRST_OF_WALL: Due = Due(OF_WALL);

    pub(crate) fn engine(at: Timestamp) -> Due {
        Due(at.as_millis().min(OF_WALL - 1))
    }

    pub(crate) fn wall(at: Timestamp) -> Due {
        Due(at.as_millis().min(OF_WALL - 1) | OF_WALL)
    }

    /// When a message that is kept back comes; nothing if that is over already.
    pub(crate) fn of_kept_back(kept_back: Option<KeptBack>, now: ClockInstants) -> Option<Due> {
        let due = match kept_back? {
            KeptBack::Until(at) => Due::wall(at),
            KeptBack::For(span) => Due::engine(now.engine + span),
        };
        Some(due).filter(|due| !due.is_past(now))
    }

    pub(crate) fn from_bits(bits: u64) -> Due {
        Due(bits)
    }

    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// The instant, on its own clock.
    pub(crate) fn at(self) -> Timestamp {
        Timestamp::from_millis(self.0 & !OF_WALL)
    }

    pub(crate) fn is_of_wall(self) -> bool {
        self >= Due::FIRST_OF_WALL
    }

    /// What its own clock shows.
    pub(crate) fn clock(self, now: ClockInstants) -> Timestamp {
        if self.is_of_wall() { now.wall } else { now.engine }
    }

    /// Whether its own clock has come to it.
    pub(crate) fn is_past(self, now: ClockInstants) -> bool {
        self.at() <= self.clock(now)
    }

    /// So much later, on the same clock.
    pub(crate) fn later_by(self, span: Duration) -> Due {
        if self.is_of_wall() { Due::wall(self.at() + span) } else { Due::engine(self.at() + span) }
    }

    /// When that is by the wall clock, if nobody sets it until then.
    pub(crate) fn shown(self, now: ClockInstants) -> Timestamp {
        if self.is_of_wall() { self.at() } else { shown(self.at(), now) }
    }
}

/// When a message that was set aside comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DeferralEnd {
    /// When it is asked for by its sequence number.
    ByConsumer,
    At(Timestamp),
    After(Duration),
}

impl From<Timestamp> for Due {
    fn from(at: Timestamp) -> Due {
        Due::engine(at)
    }
}

impl fmt::Display for Due {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clock = if self.is_of_wall() { "wall" } else { "engine" };
        write!(f, "{} of {clock} time", self.at())
    }
}

/// An instant of engine time by the wall clock, if nobody sets it until then.
pub(crate) fn shown(at: Timestamp, now: ClockInstants) -> Timestamp {
    let until = i128::from(at.as_millis()) - i128::from(now.engine.as_millis());
    let shown = i128::from(now.wall.as_millis()) + until;
    Timestamp::from_millis(u64::try_from(shown.max(0)).unwrap_or(u64::MAX))
}

/// The first that is due of each clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NextDue {
    pub(crate) engine: Option<Due>,
    pub(crate) wall: Option<Due>,
}

impl NextDue {
    /// Whether something is due by now.
    pub(crate) fn is_past(self, now: ClockInstants) -> bool {
        [self.engine, self.wall].into_iter().flatten().any(|due| due.is_past(now))
    }

    /// When the first thing is due by the wall clock.
    pub(crate) fn shown(self, now: ClockInstants) -> Option<Timestamp> {
        [self.engine, self.wall].into_iter().flatten().map(|due| due.shown(now)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn an_instant_is_compared_with_its_own_clock_only() {
        let now = ClockInstants { engine: at(100), wall: at(5_000) };
        assert!(Due::engine(at(100)).is_past(now) && !Due::engine(at(101)).is_past(now));
        assert!(Due::wall(at(5_000)).is_past(now) && !Due::wall(at(5_001)).is_past(now));
        assert!(Due::engine(Timestamp::MAX) < Due::wall(at(0)), "each clock has its own range of keys");
    }

    #[test]
    fn instants_are_shown_by_the_wall_clock() {
        let now = ClockInstants { engine: at(100), wall: at(5_000) };
        assert_eq!(Due::engine(at(130)).shown(now), at(5_030));
        assert_eq!(Due::engine(at(60)).shown(now), at(4_960));
        assert_eq!(Due::wall(at(7)).shown(now), at(7));
        let behind = ClockInstants { engine: at(5_000), wall: at(100) };
        assert_eq!(Due::engine(at(10)).shown(behind), at(0), "before the first instant there is none");
    }

    #[test]
    fn an_instant_of_engine_time_has_the_bytes_of_a_timestamp() {
        let due = postcard::to_stdvec(&Due::engine(at(77))).unwrap();
        assert_eq!(due, postcard::to_stdvec(&at(77)).unwrap());
    }
}
