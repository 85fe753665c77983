//! How many connections there may be, in all, from other machines, and from one of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::net::Ipv6Addr;
use std::sync::Arc;

use crate::mutex::Mutex;

/// Places for connections.
pub(crate) struct Places {
    max: usize,
    /// How many of them others than this machine may take.
    others_max: usize,
    per_address_max: usize,
    counts: Mutex<PlaceCounts>,
}

#[derive(Default)]
struct PlaceCounts {
    all: usize,
    others: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// A place, given back when it is dropped.
pub(crate) struct ConnectionPlace {
    places: Arc<Places>,
    /// Under which it is counted, unless this machine has taken it.
    address: Option<IpAddr>,
}

impl Places {
    /// So many in all, of which some are kept for this machine, and so many for one other.
    pub(crate) fn new(max: usize, kept: usize, per_address_max: usize) -> Places {
        Places { max, others_max: max.saturating_sub(kept), per_address_max, counts: Mutex::default() }
    }

    /// Takes a place for a connection from an address, if there is one. This machine itself is not limited for itself, and some
    /// places are kept for it, so that others cannot lock its operator out.
    pub(crate) fn take(self: &Arc<Places>, address: Option<IpAddr>) -> Option<ConnectionPlace> {
        let address = address.map(|address| address.to_canonical()).filter(|address| !address.is_loopback());
        let address = address.map(shared_by_machine);
        let mut counts = self.counts.lock();
        if counts.all >= self.max {
            return None;
        }
        if let Some(address) = address {
            let own = counts.by_address.get(&address).copied().unwrap_or_default();
            if counts.others >= self.others_max || own >= self.per_address_max {
                return None;
            }
            counts.others += 1;
            counts.by_address.insert(address, own + 1);
        }
        counts.all += 1;
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
        let Some(address) = self.address else { return };
        counts.others -= 1;
        if let Some(own) = counts.by_address.get_mut(&address) {
            *own -= 1;
            if *own == 0 {
                counts.by_address.remove(&address);
            }
        }
    }
}

/// What all addresses of one machine have in common: of IPv6 one machine has as many as it likes, in a network of 64 bits.
fn shared_by_machine(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        // Those of one link are machines that stand side by side.
        IpAddr::V6(of_link) if of_link.is_unicast_link_local() => address,
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(network))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_other_machine_cannot_take_every_place() {
        let places = Arc::new(Places::new(4, 0, 2));
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

    #[test]
    fn all_other_machines_together_leave_some_places_to_this_one() {
        let places = Arc::new(Places::new(4, 1, 2));
        let other = |last: u8| places.take(Some([10, 0, 0, last].into()));
        let mut held: Vec<ConnectionPlace> = (1..=3).map(|last| other(last).unwrap()).collect();
        assert!(other(4).is_none(), "the last is kept");
        let here = places.take(Some([127, 0, 0, 1].into())).unwrap();
        assert!(places.take(None).is_none(), "all are taken");
        drop(here);
        let _here = places.take(None).unwrap();
        held.pop();
        assert!(other(4).is_some());
    }

    #[test]
    fn one_network_of_ipv6_counts_as_one_machine() {
        let places = Arc::new(Places::new(10, 0, 2));
        let take = |address: &str| places.take(Some(address.parse().unwrap()));
        let _own = [take("2001:db8:0:1::1").unwrap(), take("2001:db8:0:1:ffff::2").unwrap()];
        assert!(take("2001:db8:0:1::3").is_none());
        assert!(take("2001:db8:0:2::1").is_some());
        let _of_one_link = [1, 2, 3].map(|last| take(&format!("fe80::{last}")).unwrap());
        // Those of IPv4 that come as IPv6 are machines of their own.
        let _others = [1, 2, 3].map(|last| take(&format!("::ffff:10.0.0.{last}")).unwrap());
    }
}
