//! The table of medians, as Markdown.

use std::fmt::Write as _;

use crate::Side;
use crate::bench::BenchOutcome;
use crate::comparison::Comparison;

const HEADING: &str = "\
| workload | messages | seriatim | SQLite | ratio | raw append | CPU µs/message | peak MiB | written/body | |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---|
";

/// Something that a turn may have measured.
type Measured = fn(&BenchOutcome) -> Option<f64>;

/// The table of some comparisons.
pub(crate) fn table(comparisons: &[Comparison], sync_delay_ms: u64) -> String {
    let mut table = String::new();
    if sync_delay_ms > 0 {
        let _ = writeln!(
            table,
            "With {sync_delay_ms} ms added to every fsync (of those that can be slowed down):\n"
        );
    }
    table.push_str(HEADING);
    for comparison in comparisons {
        let cells = [
            comparison.workload.name().to_owned(),
            comparison.messages().to_string(),
            result(comparison, Side::Seriatim),
            result(comparison, Side::Sqlite),
            comparison.ratio().map_or_else(dash, |ratio| format!("{ratio:.2}")),
            comparison.raw_per_second().map_or_else(dash, per_second),
            both(comparison, 1, |outcome| outcome.costs.cpu_us_per_message),
            both(comparison, 0, |outcome| Some(outcome.costs.memory_bytes_peak? as f64 / f64::from(1 << 20))),
            both(comparison, 1, |outcome| outcome.costs.written_bytes_per_body_byte),
            remarks(comparison),
        ];
        let _ = writeln!(table, "| {} |", cells.join(" | "));
    }
    table
}

/// What a workload is about: a rate, or the middle of the latencies.
fn result(comparison: &Comparison, side: Side) -> String {
    if let Some(p50_ms) = comparison.median(side, |outcome| Some(outcome.particulars.latency?.p50_ms)) {
        return format!("p50 {p50_ms:.2} ms");
    }
    let rate = comparison.median(side, |outcome| Some(outcome.messages_per_second));
    rate.map_or_else(dash, per_second)
}

/// What only this workload measures, of both.
fn remarks(comparison: &Comparison) -> String {
    let measured: [(&str, Measured); 9] = [
        ("sent/s", |outcome| outcome.particulars.sent_per_second),
        ("drained/s", |outcome| outcome.particulars.drained_per_second),
        ("last tenth / first", |outcome| outcome.particulars.last_tenth_to_first),
        ("p99 ms", |outcome| Some(outcome.particulars.latency?.p99_ms)),
        ("max ms", |outcome| Some(outcome.particulars.latency?.max_ms)),
        ("late p50 ms", |outcome| Some(outcome.particulars.retry_late?.p50_ms)),
        ("late p99 ms", |outcome| Some(outcome.particulars.retry_late?.p99_ms)),
        ("without/s", |outcome| outcome.particulars.without_per_second),
        ("loss %", |outcome| outcome.particulars.loss_percent),
    ];
    let is_measured = |measure: &Measured| {
        comparison.sides().iter().any(|side| comparison.median(*side, measure).is_some())
    };
    let remarks = measured.iter().filter(|(_, measure)| is_measured(measure)).map(|(name, measure)| {
        let digits = if name.ends_with("/s") { 0 } else { 1 };
        format!("{name} {}", both(comparison, digits, measure))
    });
    remarks.collect::<Vec<_>>().join(", ")
}

/// The engine's number and SQLite's.
fn both(comparison: &Comparison, digits: usize, measured: impl Fn(&BenchOutcome) -> Option<f64>) -> String {
    let of =
        |side| comparison.median(side, &measured).map_or_else(dash, |number| format!("{number:.digits$}"));
    format!("{} / {}", of(Side::Seriatim), of(Side::Sqlite))
}

fn per_second(rate: f64) -> String {
    format!("{rate:.0}/s")
}

fn dash() -> String {
    "-".to_owned()
}
