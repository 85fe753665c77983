//! What is due when: the timeout of a silent peer, and the heartbeats that keep its own.

/// The instants of one connection, in milliseconds since any beginning.
#[derive(Debug)]
pub(crate) struct Pulse {
    now_ms: u64,
    received_at_ms: u64,
    spoke_at_ms: u64,
    /// The deadline for a peer that opens or closes.
    pub(crate) stage_ends_ms: Option<u64>,
    /// How long the peer may be silent.
    idle_timeout_ms: Option<u64>,
    /// How long this side may be silent.
    beat_ms: Option<u64>,
}

/// What is due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PulseAction {
    Nothing,
    Heartbeat,
    /// The peer takes too long to open or to close.
    StageOver,
    /// The peer was silent for too long.
    Silence,
}

impl Pulse {
    pub(crate) fn new(now_ms: u64, idle_timeout_ms: Option<u64>) -> Pulse {
        Pulse {
            now_ms,
            received_at_ms: now_ms,
            spoke_at_ms: now_ms,
            stage_ends_ms: None,
            idle_timeout_ms,
            beat_ms: None,
        }
    }

    /// Time has passed; it never goes back.
    pub(crate) fn pass(&mut self, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
    }

    pub(crate) fn note_received(&mut self) {
        self.received_at_ms = self.now_ms;
    }

    /// Something was written since the last look. When is not known, so the last look is taken: too early never hurts.
    pub(crate) fn spoke(&mut self) {
        self.spoke_at_ms = self.now_ms;
    }

    /// The peer gives up after this long a silence.
    pub(crate) fn beat_for(&mut self, idle_ms: u32) {
        self.beat_ms = (idle_ms > 0).then_some(u64::from(idle_ms / 2));
    }

    /// A new stage begins, which may take so long.
    pub(crate) fn begin_stage(&mut self, ms_max: u64) {
        self.stage_ends_ms = Some(self.now_ms.saturating_add(ms_max));
    }

    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        let silence = self.idle_timeout_ms.map(|ms| self.received_at_ms.saturating_add(ms));
        let beat = self.beat_ms.map(|ms| self.spoke_at_ms.saturating_add(ms));
        [silence, beat, self.stage_ends_ms].into_iter().flatten().min()
    }

    pub(crate) fn due(&self) -> PulseAction {
        let is_past = |from_ms: u64, ms: u64| self.now_ms >= from_ms.saturating_add(ms);
        if self.stage_ends_ms.is_some_and(|end_ms| self.now_ms >= end_ms) {
            PulseAction::StageOver
        } else if self.idle_timeout_ms.is_some_and(|ms| is_past(self.received_at_ms, ms)) {
            PulseAction::Silence
        } else if self.beat_ms.is_some_and(|ms| is_past(self.spoke_at_ms, ms)) {
            PulseAction::Heartbeat
        } else {
            PulseAction::Nothing
        }
    }
}
