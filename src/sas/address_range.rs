//! The addresses from which a signature may be used: one, or all from one to another.

use std::net::IpAddr;
use std::str::FromStr;

use crate::sas::refusal::SignatureRefusal;

/// The addresses from which a signature may be used, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressRange {
    first: IpAddr,
    last: IpAddr,
}

impl AddressRange {
    /// Whether an address is one of them. One of IPv4 is the same when it comes written as one of IPv6.
    pub(crate) fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && self.first <= address && address <= self.last
    }
}

impl FromStr for AddressRange {
    type Err = SignatureRefusal;

    fn from_str(text: &str) -> Result<AddressRange, SignatureRefusal> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let read = |text: &str| text.trim().parse::<IpAddr>().map_err(|_| SignatureRefusal::Malformed);
        let (first, last) = (read(first)?.to_canonical(), read(last)?.to_canonical());
        match first.is_ipv4() == last.is_ipv4() && first <= last {
            true => Ok(AddressRange { first, last }),
            false => Err(SignatureRefusal::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_within_its_range_and_no_other_is() {
        let contains = |range: &str, address: &str| {
            range.parse::<AddressRange>().unwrap().contains(address.parse().unwrap())
        };
        assert!(contains("168.1.5.65", "168.1.5.65") && !contains("168.1.5.65", "168.1.5.66"));
        assert!(
            contains("168.1.5.60-168.1.5.70", "168.1.5.60")
                && contains("168.1.5.60-168.1.5.70", "168.1.5.70")
        );
        assert!(!contains("168.1.5.60-168.1.5.70", "168.1.5.71"));
        assert!(contains("127.0.0.1", "::ffff:127.0.0.1") && !contains("0.0.0.0-255.255.255.255", "::1"));
        assert!(contains("::1", "::1"));
        for wrong in ["", "a", "1.2.3.4-", "1.2.3.9-1.2.3.4", "1.2.3.4-::1", "1.2.3.0/24"] {
            assert!(wrong.parse::<AddressRange>().is_err(), "{wrong}");
        }
    }
}
