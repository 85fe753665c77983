//! What a run costs: CPU time, memory and written bytes, read from /proc where there is one.

use std::fs;
use std::time::Duration;

use seriatim::Clock;
use seriatim::SystemClock;

/// A tick of the CPU times in /proc: 1/100 s on every Linux, whatever the kernel's own rate.
const TICK: Duration = Duration::from_millis(10);

/// Counts from its start to its end, several times if asked to, and adds up.
pub(crate) struct RunMeter {
    clock: SystemClock,
    started: MeterCounters,
    used: Usage,
}

/// What was used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) time: Duration,
    /// User and system time of all threads.
    pub(crate) cpu: Option<Duration>,
    /// Bytes this process had to write to the disk.
    pub(crate) written_bytes: Option<u64>,
    /// The most memory it had at once.
    pub(crate) memory_bytes_peak: Option<u64>,
}

#[derive(Clone, Copy, Default)]
struct MeterCounters {
    time: Duration,
    cpu: Option<Duration>,
    written_bytes: Option<u64>,
}

impl RunMeter {
    pub(crate) fn new() -> RunMeter {
        RunMeter { clock: SystemClock::default(), started: MeterCounters::default(), used: Usage::default() }
    }

    /// Starts counting.
    pub(crate) fn start(&mut self) {
        // 5 sets the peak back to what is there now.
        let _ = fs::write("/proc/self/clear_refs", "5");
        self.started = self.counters();
    }

    /// Stops counting, and says how long this part took.
    pub(crate) fn stop(&mut self) -> Duration {
        let ended = self.counters();
        let time = ended.time - self.started.time;
        let sum =
            |sum: Option<u64>, end: Option<u64>, start: Option<u64>| Some(sum.unwrap_or(0) + (end? - start?));
        let used = &mut self.used;
        used.time += time;
        used.written_bytes = sum(used.written_bytes, ended.written_bytes, self.started.written_bytes);
        used.cpu = match (ended.cpu, self.started.cpu) {
            (Some(end), Some(start)) => Some(used.cpu.unwrap_or_default() + end.saturating_sub(start)),
            _ => None,
        };
        used.memory_bytes_peak = used.memory_bytes_peak.max(memory_bytes_peak());
        time
    }

    /// How long it has been counting in this part.
    pub(crate) fn lap(&self) -> Duration {
        self.clock.elapsed() - self.started.time
    }

    /// All that was used while it counted.
    pub(crate) fn used(&self) -> Usage {
        self.used
    }

    fn counters(&self) -> MeterCounters {
        MeterCounters { time: self.clock.elapsed(), cpu: cpu_time(), written_bytes: written_bytes() }
    }
}

/// User and system time: the 14th and 15th field of the line, counted behind the name in brackets.
fn cpu_time() -> Option<Duration> {
    let line = fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = line.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks: u32 = fields.next()?.parse::<u32>().ok()? + fields.next()?.parse::<u32>().ok()?;
    Some(TICK * ticks)
}

fn written_bytes() -> Option<u64> {
    number_after(&fs::read_to_string("/proc/self/io").ok()?, "write_bytes:")
}

fn memory_bytes_peak() -> Option<u64> {
    number_after(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:").map(|kib| kib * 1024)
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_after_its_whole_name() {
        let text = "cancelled_write_bytes: 7\nwrite_bytes: 4096\nVmHWM:\t  12 kB\n";
        assert_eq!(number_after(text, "write_bytes:"), Some(4096));
        assert_eq!(number_after(text, "VmHWM:"), Some(12));
        assert_eq!(number_after(text, "absent:"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_used_is_counted() {
        let mut meter = RunMeter::new();
        meter.start();
        meter.stop();
        let used = meter.used();
        assert!(used.cpu.is_some() && used.memory_bytes_peak > Some(0), "{used:?}");
    }
}
