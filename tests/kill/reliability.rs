//! What a run of these tests says of itself: one line a machine can read.

use std::io::Write;
use std::time::Duration;

use seriatim::Clock;
use seriatim::SystemClock;

/// A number from the environment.
pub(crate) fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The seed of this run: `SERIATIM_SEED`, or another each time.
pub(crate) fn seed() -> u64 {
    let seed = number("SERIATIM_SEED").unwrap_or_else(|| SystemClock::default().now().as_millis());
    println!("SERIATIM_SEED={seed}");
    seed
}

/// A test under way.
pub(crate) struct Measured {
    name: &'static str,
    clock: SystemClock,
}

impl Measured {
    pub(crate) fn begin(name: &'static str) -> Measured {
        Measured { name, clock: SystemClock::default() }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Says how it went.
    pub(crate) fn end(&self, count: u64, failures: u64) {
        let seconds = self.clock.elapsed().as_secs_f64();
        let name = self.name;
        tell(&format!(
            "reliability: {{\"name\":\"{name}\",\"count\":{count},\"seconds\":{seconds:.1},\"failures\":{failures}}}"
        ));
    }

    /// Says that this machine does not allow it; `tests/reliability/run.py` and the sum of `.ci/run` count the line.
    pub(crate) fn skip(&self, reason: &str) {
        tell(&format!("skipped: {}: {reason}", self.name));
    }
}

/// Prints a line that the test harness does not keep to itself when all is well.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
