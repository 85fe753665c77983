//! The table of `seriatim bench`, for a person.

use crate::bench::BenchOutcome;

/// The line above the rows.
pub(crate) fn heading() -> String {
    line(["workload", "messages/s", "CPU us/msg", "peak MiB", "written/body", "of raw"], "")
}

/// The row of a workload.
pub(crate) fn row(outcome: &BenchOutcome) -> String {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let costs = &outcome.costs;
    let cells = [
        outcome.workload.name(),
        &format!("{:.0}", outcome.messages_per_second),
        &or_dash(costs.cpu_us_per_message.map(|cpu| format!("{cpu:.1}"))),
        &or_dash(costs.memory_bytes_peak.map(|bytes| format!("{:.0}", bytes as f64 / f64::from(1 << 20)))),
        &or_dash(costs.written_bytes_per_body_byte.map(|bytes| format!("{bytes:.1}"))),
        &format!("{:.1} %", outcome.ratio_to_raw * 100.0),
    ];
    line(cells, &remarks(outcome).join("; "))
}

fn line(cells: [&str; 6], remarks: &str) -> String {
    let [name, rate, cpu, memory, written, raw] = cells;
    let line = format!("{name:<9} {rate:>11} {cpu:>11} {memory:>9} {written:>13} {raw:>8}   {remarks}");
    line.trim_end().to_owned()
}

/// What only this workload measures.
fn remarks(outcome: &BenchOutcome) -> Vec<String> {
    let particulars = &outcome.particulars;
    let mut remarks = Vec::new();
    if let (Some(sent), Some(drained)) = (particulars.sent_per_second, particulars.drained_per_second) {
        remarks.push(format!("sent {sent:.0}/s, drained {drained:.0}/s"));
    }
    if let Some(times) = particulars.last_tenth_to_first {
        remarks.push(format!("the last tenth took {times:.2} times as long as the first"));
    }
    for (what, spread) in
        [("to the handler", particulars.latency), ("later than due", particulars.retry_late)]
    {
        if let Some(spread) = spread {
            let (p50, p99, max) = (spread.p50_ms, spread.p99_ms, spread.max_ms);
            remarks.push(format!("{what} p50 {p50:.1}, p99 {p99:.1}, max {max:.1} ms"));
        }
    }
    if let (Some(stored), Some(purged)) = (particulars.stored_messages, particulars.purged_per_second) {
        remarks.push(format!("while {stored} are purged, {purged:.0}/s"));
    }
    if let (Some(without), Some(loss)) = (particulars.without_per_second, particulars.loss_percent) {
        let burden = match particulars.stored_messages {
            Some(stored) => format!("{stored} stored"),
            None => "a history".to_owned(),
        };
        remarks.push(format!("{without:.0}/s without {burden}: loss {loss:.1} %"));
    }
    remarks
}
