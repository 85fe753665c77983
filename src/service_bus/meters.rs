//! What the endpoint does, counted while it happens, and which messages it cannot hand out.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::service_bus::too_large::TooLargeMessages;
use crate::service_bus::waiting::FullWindows;

/// Counters of an endpoint; all clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meters {
    counters: Arc<Counters>,
    /// Messages that are too large for their receivers.
    pub(crate) too_large: Arc<TooLargeMessages>,
    /// Links that are sent nothing for now, because their windows are full.
    pub(crate) full_windows: Arc<FullWindows>,
}

#[derive(Debug, Default)]
struct Counters {
    connections: AtomicU64,
    received: AtomicU64,
    refused: AtomicU64,
    delivered: AtomicU64,
    settled: AtomicU64,
    windows: AtomicU64,
    lost_in_buffers: AtomicU64,
}

/// What the counters say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MeterReading {
    /// Connections that are open.
    pub(crate) connections: u64,
    /// Messages that were accepted from clients.
    pub(crate) received: u64,
    /// Messages that were refused.
    pub(crate) refused: u64,
    /// Messages that were sent to clients.
    pub(crate) delivered: u64,
    /// Messages that clients settled.
    pub(crate) settled: u64,
    /// Links that have a prefetch window, because locks ran out in their client's buffer.
    pub(crate) windows: u64,
    /// Locks that ran out in the buffer of a client.
    pub(crate) lost_in_buffers: u64,
}

/// A connection that is counted as open until this is dropped.
pub(crate) struct OpenConnection(Meters);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.counters.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Meters {
    /// Counts a connection as open.
    pub(crate) fn open(&self) -> OpenConnection {
        self.counters.connections.fetch_add(1, Ordering::Relaxed);
        OpenConnection(self.clone())
    }

    pub(crate) fn note_received(&self, accepted: usize, refused: usize) {
        self.counters.received.fetch_add(accepted as u64, Ordering::Relaxed);
        self.counters.refused.fetch_add(refused as u64, Ordering::Relaxed);
    }

    pub(crate) fn note_delivered(&self, count: usize) {
        self.counters.delivered.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn note_settled(&self, count: usize) {
        self.counters.settled.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Counts a link that has a window, until it is gone.
    pub(crate) fn note_window(&self) {
        self.counters.windows.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_window_gone(&self) {
        self.counters.windows.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn note_lost_in_buffers(&self, count: u64) {
        self.counters.lost_in_buffers.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> MeterReading {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        MeterReading {
            connections: read(&self.counters.connections),
            received: read(&self.counters.received),
            refused: read(&self.counters.refused),
            delivered: read(&self.counters.delivered),
            settled: read(&self.counters.settled),
            windows: read(&self.counters.windows),
            lost_in_buffers: read(&self.counters.lost_in_buffers),
        }
    }
}
