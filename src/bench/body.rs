//! Bodies: each says which message it is, and the rest is noise that nothing can compress.

use std::time::Duration;

use bytes::Bytes;

use crate::bench::error::BenchError;

/// Bytes of every body.
pub(crate) const BODY_LEN: usize = 256;

/// What a body says of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyStamp {
    /// Which workflow it belongs to.
    pub(crate) workflow: u32,
    /// Its place there, from 0.
    pub(crate) index: u32,
    /// When its sender called send, in microseconds of the run.
    pub(crate) sent_us: u64,
}

impl BodyStamp {
    pub(crate) fn new(workflow: u32, index: u32, sent: Duration) -> BodyStamp {
        BodyStamp { workflow, index, sent_us: u64::try_from(sent.as_micros()).unwrap_or(u64::MAX) }
    }

    /// When its sender called send.
    pub(crate) fn sent(&self) -> Duration {
        Duration::from_micros(self.sent_us)
    }

    /// The body that says so.
    pub(crate) fn write(&self) -> Bytes {
        let mut body = Vec::with_capacity(BODY_LEN);
        body.extend(self.words()[0].to_le_bytes());
        body.extend(self.words()[1].to_le_bytes());
        let mut noise = Noise(self.seed());
        while body.len() < BODY_LEN {
            body.extend(noise.next().to_le_bytes());
        }
        body.into()
    }

    /// Reads a body, and finds one that was changed.
    pub(crate) fn read(body: &[u8]) -> Result<BodyStamp, BenchError> {
        let word =
            |at: usize| body.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
        let (Some(place), Some(sent_us), true) = (word(0), word(8), body.len() == BODY_LEN) else {
            return Err(BenchError::Broken(format!("a body came back with {} bytes", body.len())));
        };
        let stamp = BodyStamp { workflow: place as u32, index: (place >> 32) as u32, sent_us };
        if word(16) != Some(Noise(stamp.seed()).next()) {
            return Err(BenchError::Broken(format!("the body of {stamp:?} came back changed")));
        }
        Ok(stamp)
    }

    fn words(&self) -> [u64; 2] {
        [u64::from(self.index) << 32 | u64::from(self.workflow), self.sent_us]
    }

    fn seed(&self) -> u64 {
        let [place, sent_us] = self.words();
        place ^ sent_us.rotate_left(17)
    }
}

/// Noise that is the same in every run: SplitMix64.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_says_which_message_it_is() {
        let stamp = BodyStamp::new(7, 300, Duration::from_micros(12_345));
        let body = stamp.write();
        assert_eq!(body.len(), BODY_LEN);
        assert_eq!(BodyStamp::read(&body).unwrap(), stamp);
    }

    #[test]
    fn a_changed_body_is_found() {
        let mut body = BodyStamp::new(7, 300, Duration::ZERO).write().to_vec();
        body[3] ^= 1;
        assert!(BodyStamp::read(&body).is_err());
        assert!(BodyStamp::read(&body[..100]).is_err());
    }
}
