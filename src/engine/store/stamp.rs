//! What the clocks showed with a commit.

use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;

use crate::clock::ClockSteps;
use crate::clock::Timestamp;

/// What both clocks showed with a commit. It is written in two parts, because older files have only the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Engine time.
    pub(crate) engine: Timestamp,
    /// What the operating system's wall clock showed; zero if nobody looked.
    pub(crate) wall: Timestamp,
    /// By how much that was ahead of the wall clock that is believed.
    pub(crate) ahead: Duration,
    /// The steps of the wall clock that were noticed so far.
    pub(crate) steps: ClockSteps,
}

/// The second part of a stamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WallRecord {
    pub(crate) wall: Timestamp,
    pub(crate) ahead: Duration,
    pub(crate) steps: ClockSteps,
}

impl Stamp {
    pub(crate) fn new(engine: Timestamp, record: WallRecord) -> Stamp {
        let WallRecord { wall, ahead, steps } = record;
        Stamp { engine, wall, ahead, steps }
    }

    pub(crate) fn wall_record(self) -> WallRecord {
        let Stamp { wall, ahead, steps, .. } = self;
        WallRecord { wall, ahead, steps }
    }
}

#[cfg(test)]
impl From<Timestamp> for Stamp {
    /// Both clocks showed the same.
    fn from(at: Timestamp) -> Stamp {
        Stamp { engine: at, wall: at, ..Stamp::default() }
    }
}
