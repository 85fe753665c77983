//! Places for requests that are under way: each partition has its own, so that one that does not answer takes none of another.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;

use crate::error::Unavailable;
use crate::limits;

/// Places for requests that are under way.
pub(crate) struct RequestPlaces {
    partitions: Vec<PlaceShare>,
    /// For requests that are of no certain partition.
    others: PlaceShare,
}

/// The places of one partition.
struct PlaceShare {
    places: Arc<Semaphore>,
    /// Whether somebody has waited for a place in vain, and none was free since.
    is_stuck: AtomicBool,
}

impl PlaceShare {
    fn new(places: usize) -> PlaceShare {
        PlaceShare { places: Arc::new(Semaphore::new(places)), is_stuck: AtomicBool::new(false) }
    }

    async fn take(&self) -> Result<OwnedSemaphorePermit, Unavailable> {
        let taken = match self.places.clone().try_acquire_owned() {
            Ok(place) => Some(place),
            // Whoever waits for a place keeps those waiting who come later: once is enough.
            Err(_) if self.is_stuck.load(Ordering::Relaxed) => None,
            Err(_) => {
                let place = self.places.clone().acquire_owned();
                tokio::time::timeout(limits::PLACE_WAIT, place).await.ok().and_then(Result::ok)
            }
        };
        self.is_stuck.store(taken.is_none(), Ordering::Relaxed);
        taken.ok_or(Unavailable::Busy)
    }
}

impl RequestPlaces {
    /// So many places for each of the partitions.
    pub(crate) fn new(partitions: u16, places: usize) -> RequestPlaces {
        let partitions = (0..partitions).map(|_| PlaceShare::new(places)).collect();
        RequestPlaces { partitions, others: PlaceShare::new(places) }
    }

    /// A place for a request to a partition, or for one to no certain partition; if need be, after a moment.
    ///
    /// # Errors
    /// [`Unavailable::Busy`] when there is none.
    pub(crate) async fn take(&self, partition: Option<u16>) -> Result<OwnedSemaphorePermit, Unavailable> {
        let share = partition.and_then(|partition| self.partitions.get(usize::from(partition)));
        share.unwrap_or(&self.others).take().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_partition_that_has_all_its_places_taken_keeps_others_waiting_once() {
        let places = RequestPlaces::new(2, 2);
        let held = [places.take(Some(0)).await.unwrap(), places.take(Some(0)).await.unwrap()];
        let refused = async {
            for _ in 0..3 {
                assert!(matches!(places.take(Some(0)).await, Err(Unavailable::Busy)));
                drop(places.take(Some(1)).await.unwrap());
                drop(places.take(None).await.unwrap());
            }
        };
        let once = limits::PLACE_WAIT + limits::PLACE_WAIT / 2;
        tokio::time::timeout(once, refused).await.expect("the second is refused at once");
        drop(held);
        let held = [places.take(Some(0)).await.unwrap(), places.take(Some(0)).await.unwrap()];
        let waiting = async {
            let (place, ()) = tokio::join!(places.take(Some(0)), async { drop(held) });
            place
        };
        drop(waiting.await.expect("it waits for a place again"));
    }
}
