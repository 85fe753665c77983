//! Bodies as they come in: bounded in bytes, in memory over all requests, and in how slow they may be.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::body::Body as HttpBody;
use thiserror::Error;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::inbound::timeouts::Timeouts;
use crate::limits;

/// Why a body is not read to its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum BodyRefusal {
    /// It is larger than it may be.
    #[error("the body has more than {0} bytes")]
    TooLarge(usize),
    /// It comes too slowly.
    #[error("{bytes} bytes of the body came; at least {rate} bytes a second are expected")]
    TooSlow {
        /// How much of it came.
        bytes: usize,
        /// How many bytes a second are expected.
        rate: usize,
    },
    /// It ended before its end.
    #[error("cannot read the body: {0}")]
    Broken(String),
    /// There is no room for it now.
    #[error("too many bodies are being read at once")]
    NoRoom,
}

impl BodyRefusal {
    /// The kind of problem that it is.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            BodyRefusal::TooLarge(_) => "body_too_large",
            BodyRefusal::TooSlow { .. } => "too_slow",
            BodyRefusal::Broken(_) => "malformed",
            BodyRefusal::NoRoom => "busy",
        }
    }
}

/// What all bodies that a server reads have in common.
pub(crate) struct BodyLimits {
    /// Room for bodies that are being read, in KiB.
    pub(crate) room: Arc<Semaphore>,
    timeouts: Timeouts,
    /// Measures how long things take.
    clock: Box<dyn Clock>,
}

impl BodyLimits {
    /// Room for so many bytes at once.
    pub(crate) fn new(bytes: usize, timeouts: Timeouts) -> BodyLimits {
        let room = Arc::new(Semaphore::new(bytes / 1024));
        BodyLimits { room, timeouts, clock: Box::new(SystemClock::default()) }
    }
}

/// A body that is being read.
pub(crate) struct Inflow {
    reading: Arc<BodyLimits>,
    body: Body,
    bytes: usize,
    bytes_max: usize,
    /// How long the sender was waited for; what we take to handle what has come does not count.
    waited: Duration,
}

impl Inflow {
    pub(crate) fn new(reading: &Arc<BodyLimits>, body: Body, bytes_max: usize) -> Inflow {
        Inflow { reading: reading.clone(), body, bytes: 0, bytes_max, waited: Duration::ZERO }
    }

    /// The next bytes, however many have come; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, BodyRefusal> {
        // Refused before it is read, if it says how long it is.
        let announced = self.body.size_hint().lower().saturating_add(self.bytes as u64);
        check_length(Some(announced), self.bytes_max)?;
        loop {
            let started = self.reading.clock.elapsed();
            let paid = Duration::from_secs((self.bytes / limits::HTTP_BODY_RATE_MIN) as u64);
            let timeouts = (self.reading.timeouts.body + paid).saturating_sub(self.waited);
            let frame = match tokio::time::timeout(timeouts, self.body.frame()).await {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(None),
                Err(_) => return Err(self.too_slow()),
            };
            self.waited += self.reading.clock.elapsed().saturating_sub(started);
            let frame = frame.map_err(|error| BodyRefusal::Broken(error.to_string()))?;
            let Ok(data) = frame.into_data() else { continue };
            self.bytes += data.len();
            if self.bytes > self.bytes_max {
                return Err(BodyRefusal::TooLarge(self.bytes_max));
            }
            return Ok(Some(data));
        }
    }

    fn too_slow(&self) -> BodyRefusal {
        BodyRefusal::TooSlow { bytes: self.bytes, rate: limits::HTTP_BODY_RATE_MIN }
    }

    /// The whole body, and the room it takes until that is dropped.
    pub(crate) async fn all(mut self) -> Result<(Bytes, BodyRoom), BodyRefusal> {
        let mut room = BodyRoom::new(&self.reading.room);
        let Some(first) = self.next().await? else { return Ok((Bytes::new(), room)) };
        room.grow_to(first.len())?;
        let Some(second) = self.next().await? else { return Ok((first, room)) };
        let mut all = BytesMut::with_capacity(2 * (first.len() + second.len()));
        all.extend_from_slice(&first);
        all.extend_from_slice(&second);
        while let Some(more) = self.next().await? {
            room.grow_to(all.len() + more.len())?;
            all.extend_from_slice(&more);
        }
        Ok((all.freeze(), room))
    }
}

/// Room in memory that a request has for its body; given back when it is dropped.
pub(crate) struct BodyRoom {
    all: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
}

impl BodyRoom {
    pub(crate) fn new(all: &Arc<Semaphore>) -> BodyRoom {
        BodyRoom { all: all.clone(), permit: None }
    }

    /// Takes room for so many bytes in all. Who finds none is refused at once: waiting for each other, requests that
    /// have a part of their room could wait for ever.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), BodyRefusal> {
        let have = self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = bytes.div_ceil(1024).saturating_sub(have);
        if missing == 0 {
            return Ok(());
        }
        // Several at once, so that small pieces do not ask each time.
        let missing = u32::try_from(missing.next_multiple_of(64)).unwrap_or(u32::MAX);
        let more = self.all.clone().try_acquire_many_owned(missing);
        let more = more.map_err(|_| BodyRefusal::NoRoom)?;
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
        Ok(())
    }
}

/// Refuses a body before any of it is read, if its length is known to be too much.
pub(crate) fn check_length(length: Option<u64>, bytes_max: usize) -> Result<(), BodyRefusal> {
    match length {
        Some(length) if length > bytes_max as u64 => Err(BodyRefusal::TooLarge(bytes_max)),
        _ => Ok(()),
    }
}
