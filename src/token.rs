//! The lock token: proof that its holder holds a delivery.

use std::fmt;
use std::hash::Hash;
use std::hash::Hasher;
use std::ops::Range;
use std::str::FromStr;

use serde::Deserialize;
use serde::Serialize;

use crate::error::Misuse;
use crate::lookup::RecentKey;

/// Proof that you hold a delivery: 16 bytes, of which the first four are the epoch of the open file and the others
/// are random.
///
/// The engine makes it; a caller can neither choose nor guess one. A token from before the file was last opened is
/// refused as lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LockToken([u8; 16]);

impl LockToken {
    /// Makes a token of an epoch and chance.
    pub(crate) fn new(epoch: u32, chance: [u8; 12]) -> LockToken {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&epoch.to_be_bytes());
        bytes[4..].copy_from_slice(&chance);
        LockToken(bytes)
    }

    /// The same chance for a partition of a cluster: whoever has it can find where it was given.
    #[cfg(feature = "cluster")]
    pub(crate) fn of_partition(self, partition: u16) -> LockToken {
        let mut bytes = self.0;
        bytes[4..6].copy_from_slice(&partition.to_be_bytes());
        LockToken(bytes)
    }

    /// The partition that has given it.
    #[cfg(feature = "cluster")]
    pub(crate) fn partition(self) -> u16 {
        u16::from_be_bytes([self.0[4], self.0[5]])
    }

    /// The token of the `index`-th lock of one receive. Only its receiver sees these, so they may be neighbours.
    pub(crate) fn nth(self, index: usize) -> LockToken {
        let mut bytes = self.0;
        let mut low = [0; 4];
        low.copy_from_slice(&bytes[12..]);
        let shifted = u32::from_be_bytes(low).wrapping_add(u32::try_from(index).unwrap_or(u32::MAX));
        bytes[12..].copy_from_slice(&shifted.to_be_bytes());
        LockToken(bytes)
    }

    /// The 16 bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl Hash for LockToken {
    /// Half of it is enough: these bytes are chance.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut chance = [0; 8];
        chance.copy_from_slice(&self.0[8..]);
        state.write_u64(u64::from_be_bytes(chance));
    }
}

impl RecentKey for LockToken {
    /// Its end: tokens of one receive differ there.
    #[inline]
    fn hint(&self) -> usize {
        let [.., high, low] = self.0;
        usize::from(u16::from_be_bytes([high, low]))
    }
}

impl fmt::Display for LockToken {
    /// Writes the token as the text of a UUID.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part =
            |bytes: Range<usize>| self.0[bytes].iter().fold(0_u64, |part, byte| part << 8 | u64::from(*byte));
        let [a, b, c, d, e] = [part(0..4), part(4..6), part(6..8), part(8..10), part(10..16)];
        write!(f, "{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}")
    }
}

impl FromStr for LockToken {
    type Err = Misuse;

    /// Reads the text of a UUID.
    fn from_str(text: &str) -> Result<LockToken, Misuse> {
        let wrong = || Misuse::new("lock token", "is not the text of a UUID");
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
        if text.len() != 36 || digits.len() != 32 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(wrong());
        }
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(LockToken(bytes))
    }
}

impl fmt::Debug for LockToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_one_receive_and_of_different_epochs_differ() {
        let token = LockToken::new(7, [0xff; 12]);
        assert_ne!(token, token.nth(1));
        assert_eq!(token, token.nth(0));
        assert_ne!(token, LockToken::new(8, [0xff; 12]));
        assert_eq!(token.to_string(), "00000007-ffff-ffff-ffff-ffffffffffff");
        assert_eq!(token.to_string().parse(), Ok(token));
        for wrong in ["", "00000007ffffffffffffffffffffffff", "+0000007-ffff-ffff-ffff-ffffffffffff"] {
            assert!(wrong.parse::<LockToken>().is_err(), "{wrong}");
        }
    }
}
