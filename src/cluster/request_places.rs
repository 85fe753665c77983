//! Places for requests that are under way: each partition has its own, so that one that does not answer takes none of another.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;

use crate::error::Unavailable;
use crate::limits;
use crate::mutex::Mutex;

/// Of what a request needs places.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PlaceNeed {
    /// Of this partition.
    One(u16),
    /// Of each of these partitions, until its part of the request has ended.
    Parts(BTreeSet<u16>),
    /// It goes to all partitions, and waits for the last that answers.
    All,
    /// It is of no certain partition, and waits for none.
    Others,
}

/// Places for requests that are under way.
pub(crate) struct RequestPlaces {
    partitions: Vec<PlaceShare>,
    /// For requests to all partitions: one that does not answer keeps each of them.
    all: PlaceShare,
    /// For requests that are of no certain partition.
    others: PlaceShare,
}

/// The places of one partition.
struct PlaceShare {
    places: Arc<Semaphore>,
    whole: usize,
    /// Whether somebody has waited for a place in vain, and not enough were free since.
    is_stuck: AtomicBool,
}

impl PlaceShare {
    fn new(whole: usize) -> PlaceShare {
        PlaceShare { places: Arc::new(Semaphore::new(whole)), whole, is_stuck: AtomicBool::new(false) }
    }

    async fn take(&self) -> Result<OwnedSemaphorePermit, Unavailable> {
        // That one is free now and then does not mean that it is soon: whoever comes would wait each time.
        if self.places.available_permits() >= (self.whole / limits::PLACES_FREE_PART).max(1) {
            self.is_stuck.store(false, Ordering::Relaxed);
        }
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Ok(place);
        }
        // Whoever waits for a place keeps those waiting who come later: once is enough.
        if self.is_stuck.load(Ordering::Relaxed) {
            return Err(Unavailable::Busy);
        }
        let place = tokio::time::timeout(limits::PLACE_WAIT, self.places.clone().acquire_owned());
        let taken = place.await.ok().and_then(Result::ok);
        self.is_stuck.store(taken.is_none(), Ordering::Relaxed);
        taken.ok_or(Unavailable::Busy)
    }
}

impl RequestPlaces {
    /// So many places for each of the partitions.
    pub(crate) fn new(partitions: u16, places: usize) -> RequestPlaces {
        let partitions = (0..partitions).map(|_| PlaceShare::new(places)).collect();
        RequestPlaces { partitions, all: PlaceShare::new(places), others: PlaceShare::new(places) }
    }

    /// The places that a request needs; if need be, after a moment.
    ///
    /// # Errors
    /// [`Unavailable::Busy`] when there is none of one kind; nothing is held then.
    pub(crate) async fn take(&self, need: &PlaceNeed) -> Result<HeldPlaces, Unavailable> {
        let taken = match need {
            PlaceNeed::One(partition) => vec![(None, self.of(Some(*partition)).take().await?)],
            PlaceNeed::Parts(partitions) => {
                let mut taken = Vec::with_capacity(partitions.len());
                for partition in partitions {
                    taken.push((Some(*partition), self.of(Some(*partition)).take().await?));
                }
                taken
            }
            PlaceNeed::All => vec![(None, self.all.take().await?)],
            PlaceNeed::Others => vec![(None, self.of(None).take().await?)],
        };
        Ok(HeldPlaces(Mutex::new(taken)))
    }

    fn of(&self, partition: Option<u16>) -> &PlaceShare {
        let share = partition.and_then(|partition| self.partitions.get(usize::from(partition)));
        share.unwrap_or(&self.others)
    }
}

/// The places of one request, until it is dropped; with each that is of a part, of which partition that is.
#[derive(Default)]
pub(crate) struct HeldPlaces(Mutex<Vec<(Option<u16>, OwnedSemaphorePermit)>>);

impl HeldPlaces {
    /// Gives up the place of a part that has ended, while others are under way.
    fn release(&self, partition: u16) {
        self.0.lock().retain(|(part, _)| *part != Some(partition));
    }
}

/// What a request that is under way takes with it.
#[derive(Default)]
pub(crate) struct RequestWay {
    pub(crate) places: HeldPlaces,
    /// The partition of what can go to any: the one of which it has its place.
    any: OnceLock<u16>,
    /// The partition of each thing in a command that is done in parts.
    parts: OnceLock<Vec<u16>>,
}

impl RequestWay {
    /// The partition of what can go to any, chosen once.
    pub(crate) fn any(&self, choose: impl FnOnce() -> u16) -> u16 {
        *self.any.get_or_init(choose)
    }

    /// The partition of each thing in a command that is done in parts, looked for once.
    pub(crate) fn parts(&self, place: impl FnOnce() -> Vec<u16>) -> &[u16] {
        self.parts.get_or_init(place)
    }

    /// Notes that the part of a partition has ended.
    pub(crate) fn end_part(&self, partition: u16) {
        self.places.release(partition);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_partition_that_has_all_its_places_taken_keeps_others_waiting_once() {
        let places = RequestPlaces::new(2, 2);
        let held =
            [places.take(&PlaceNeed::One(0)).await.unwrap(), places.take(&PlaceNeed::One(0)).await.unwrap()];
        let refused = async {
            for _ in 0..3 {
                assert!(matches!(places.take(&PlaceNeed::One(0)).await, Err(Unavailable::Busy)));
                drop(places.take(&PlaceNeed::One(1)).await.unwrap());
                drop(places.take(&PlaceNeed::Others).await.unwrap());
                drop(places.take(&PlaceNeed::All).await.unwrap());
            }
        };
        let once = limits::PLACE_WAIT + limits::PLACE_WAIT / 2;
        tokio::time::timeout(once, refused).await.expect("the second is refused at once");
        drop(held);
        let held =
            [places.take(&PlaceNeed::One(0)).await.unwrap(), places.take(&PlaceNeed::One(0)).await.unwrap()];
        let waiting = async {
            let (place, ()) = tokio::join!(places.take(&PlaceNeed::One(0)), async { drop(held) });
            place
        };
        drop(waiting.await.expect("it waits for a place again"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_that_is_free_now_and_then_keeps_nobody_waiting_again_for_the_next() {
        let places = RequestPlaces::new(1, 8);
        let mut held = Vec::new();
        for _ in 0..8 {
            held.push(places.take(&PlaceNeed::One(0)).await.unwrap());
        }
        let served = async {
            for _ in 0..3 {
                assert!(matches!(places.take(&PlaceNeed::One(0)).await, Err(Unavailable::Busy)));
                held.pop();
                held.push(places.take(&PlaceNeed::One(0)).await.expect("one is free"));
            }
        };
        let once = limits::PLACE_WAIT + limits::PLACE_WAIT / 2;
        tokio::time::timeout(once, served).await.expect("whoever is refused later is refused at once");
        held.truncate(6);
        for _ in 0..2 {
            held.push(places.take(&PlaceNeed::One(0)).await.expect("they are free"));
        }
        let waiting = async {
            let (place, ()) = tokio::join!(places.take(&PlaceNeed::One(0)), async { drop(held.pop()) });
            place
        };
        drop(waiting.await.expect("a quarter was free, and it is waited for a place again"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_in_parts_gives_up_the_place_of_each_part_that_has_ended() {
        let (places, both) = (RequestPlaces::new(2, 1), PlaceNeed::Parts(BTreeSet::from([0, 1])));
        let way = RequestWay { places: places.take(&both).await.unwrap(), ..RequestWay::default() };
        way.end_part(0);
        drop(places.take(&PlaceNeed::One(0)).await.expect("its part has ended"));
        assert!(matches!(places.take(&both).await, Err(Unavailable::Busy)));
        drop(places.take(&PlaceNeed::One(0)).await.expect("whoever is refused holds nothing"));
        drop(way);
        drop(places.take(&both).await.expect("all has ended"));
    }
}
