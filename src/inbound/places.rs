//! How many connections there may be, in all and from one other machine.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use crate::mutex::Mutex;

/// Places for connections.
pub(crate) struct Places {
    max: usize,
    per_address_max: usize,
    counts: Mutex<PlaceCounts>,
}

#[derive(Default)]
struct PlaceCounts {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// A place, given back when it is dropped.
pub(crate) struct ConnectionPlace {
    places: Arc<Places>,
    address: Option<IpAddr>,
}

impl Places {
    pub(crate) fn new(max: usize, per_address_max: usize) -> Places {
        Places { max, per_address_max, counts: Mutex::default() }
    }

    /// Takes a place for a connection from an address, if there is one. This machine itself is not limited for itself.
    pub(crate) fn take(self: &Arc<Places>, address: Option<IpAddr>) -> Option<ConnectionPlace> {
        let address = address.map(|address| address.to_canonical()).filter(|address| !address.is_loopback());
        let mut counts = self.counts.lock();
        let own = address.map_or(0, |address| counts.by_address.get(&address).copied().unwrap_or_default());
        if counts.all >= self.max || (address.is_some() && own >= self.per_address_max) {
            return None;
        }
        counts.all += 1;
        if let Some(address) = address {
            counts.by_address.insert(address, own + 1);
        }
        Some(ConnectionPlace { places: self.clone(), address })
    }

    /// How many are taken.
    pub(crate) fn in_use(&self) -> usize {
        self.counts.lock().all
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let mut counts = self.places.counts.lock();
        counts.all -= 1;
        if let Some(address) = self.address
            && let Some(own) = counts.by_address.get_mut(&address)
        {
            *own -= 1;
            if *own == 0 {
                counts.by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_other_machine_cannot_take_every_place() {
        let places = Arc::new(Places::new(4, 2));
        let (other, here): (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), [127, 0, 0, 1].into());
        let first = places.take(Some(other)).unwrap();
        let _second = places.take(Some(other)).unwrap();
        assert!(places.take(Some(other)).is_none());
        assert_eq!(places.in_use(), 2);
        drop(first);
        assert_eq!(places.in_use(), 1);
        let _again = places.take(Some(other)).unwrap();
        let _here = [places.take(Some(here)).unwrap(), places.take(None).unwrap()];
        assert!(places.take(Some(here)).is_none(), "all are taken");
        assert!(places.take(Some([10, 0, 0, 2].into())).is_none(), "all are taken");
    }
}
