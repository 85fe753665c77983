//! How durations are spread.

use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;

/// The middle, the slow end and the slowest of many durations, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
}

impl Spread {
    /// The spread of durations; `None` when there are none.
    pub(crate) fn of(mut durations: Vec<Duration>) -> Option<Spread> {
        durations.sort_unstable();
        let millis = |duration: &Duration| (duration.as_secs_f64() * 1e6).round() / 1e3;
        // The smallest that at least so many percent do not exceed.
        let percent =
            |percent: usize| durations.get((durations.len() * percent).div_ceil(100).saturating_sub(1));
        Some(Spread {
            p50_ms: millis(percent(50)?),
            p99_ms: millis(percent(99)?),
            max_ms: millis(durations.last()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_names_the_middle_and_the_ends() {
        let spread = Spread::of((1..=200).rev().map(Duration::from_millis).collect()).unwrap();
        assert_eq!(spread, Spread { p50_ms: 100.0, p99_ms: 198.0, max_ms: 200.0 });
        assert_eq!(Spread::of(vec![Duration::from_micros(1_234)]).unwrap().p50_ms, 1.234);
        assert!(Spread::of(Vec::new()).is_none());
    }
}
