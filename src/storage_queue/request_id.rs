//! IDs of requests, under which an answer is found in the log.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::clock::Timestamp;

/// Requests that were given an ID since this process began.
static GIVEN: AtomicU64 = AtomicU64::new(0);

/// An ID that no other request of this process has, as the text of a UUID: clients read it as one. Its first part is the
/// instant, so that those of another process differ.
pub(crate) fn request_id(now: Timestamp) -> String {
    let (millis, count) = (now.as_millis(), GIVEN.fetch_add(1, Ordering::Relaxed));
    let [high, low] = [millis >> 16 & 0xffff_ffff, millis & 0xffff];
    // As in version 8 of RFC 9562: what the other bits mean is up to who writes them.
    let [first, second, third] = [count >> 60, count >> 48 & 0xfff, count & 0xffff_ffff_ffff];
    format!("{high:08x}-{low:04x}-8{first:03x}-8{second:03x}-{third:012x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_within_one_instant_and_look_like_uuids() {
        let [one, other] = [1_800_000_000_000, 1_800_000_000_000].map(Timestamp::from_millis).map(request_id);
        assert_ne!(one, other);
        let parts: Vec<usize> = one.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{one}");
        assert!(one.starts_with("01a3185c-5000-8"), "{one}");
    }
}
