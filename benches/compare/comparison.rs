//! What the turns of one workload came to.

use serde_json::Value;
use serde_json::json;

use crate::Side;
use crate::bench::BenchOutcome;
use crate::bench::Workload;

/// The outcomes of a workload, side by side.
pub(crate) struct Comparison {
    pub(crate) workload: Workload,
    sync_delay_ms: u64,
    outcomes: Vec<(Side, Vec<BenchOutcome>)>,
}

impl Comparison {
    pub(crate) fn new(workload: Workload, sync_delay_ms: u64, sides: Vec<Side>) -> Comparison {
        let outcomes = sides.into_iter().map(|side| (side, Vec::new())).collect();
        Comparison { workload, sync_delay_ms, outcomes }
    }

    /// Who takes turns.
    pub(crate) fn sides(&self) -> Vec<Side> {
        self.outcomes.iter().map(|(side, _)| *side).collect()
    }

    /// Adds the outcome of a turn.
    pub(crate) fn add(&mut self, side: Side, outcome: BenchOutcome) {
        let outcomes = self.outcomes.iter_mut().find(|(of, _)| *of == side);
        outcomes.expect("only who takes turns has outcomes").1.push(outcome);
    }

    /// A median over the turns of a side, of something each turn has measured.
    pub(crate) fn median(&self, side: Side, measured: impl Fn(&BenchOutcome) -> Option<f64>) -> Option<f64> {
        median(self.of(side)?.iter().filter_map(measured).collect())
    }

    /// How many times faster the engine is: the median over neighbouring turns.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let (ours, theirs) = (self.of(Side::Seriatim)?, self.of(Side::Sqlite)?);
        let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| {
            match (ours.particulars.latency, theirs.particulars.latency) {
                (Some(ours), Some(theirs)) => theirs.p50_ms / ours.p50_ms,
                _ => ours.messages_per_second / theirs.messages_per_second,
            }
        });
        median(ratios.collect())
    }

    /// The median rate of the raw append over all turns.
    pub(crate) fn raw_per_second(&self) -> Option<f64> {
        let outcomes = self.outcomes.iter().flat_map(|(_, outcomes)| outcomes);
        median(outcomes.map(|outcome| outcome.raw_messages_per_second).collect())
    }

    /// How many messages each turn sent.
    pub(crate) fn messages(&self) -> u64 {
        let first = self.outcomes.iter().find_map(|(_, outcomes)| outcomes.first());
        first.map_or(0, |outcome| outcome.messages)
    }

    /// One line.
    pub(crate) fn to_json(&self) -> String {
        let sides = self.outcomes.iter().map(|(side, outcomes)| {
            let rates: Vec<f64> = outcomes.iter().map(|outcome| outcome.messages_per_second).collect();
            let medians = json!({
                "messages_per_second": self.median(*side, |outcome| Some(outcome.messages_per_second)),
                "ratio_to_raw": self.median(*side, |outcome| Some(outcome.ratio_to_raw)),
                "latency_p50_ms": self.median(*side, |outcome| Some(outcome.particulars.latency?.p50_ms)),
                "loss_percent": self.median(*side, |outcome| outcome.particulars.loss_percent),
            });
            (side.name().to_owned(), json!({ "rates": rates, "median": medians, "turns": outcomes }))
        });
        let line = json!({
            "workload": self.workload,
            "messages": self.messages(),
            "sync_delay_ms": self.sync_delay_ms,
            "raw_messages_per_second": self.raw_per_second(),
            "seriatim_to_sqlite": self.ratio(),
            "contenders": sides.collect::<serde_json::Map<String, Value>>(),
        });
        line.to_string()
    }

    fn of(&self, side: Side) -> Option<&Vec<BenchOutcome>> {
        self.outcomes.iter().find(|(of, _)| *of == side).map(|(_, outcomes)| outcomes)
    }
}

fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(numbers[middle]),
        _ => Some((numbers[middle - 1] + numbers[middle]) / 2.0),
    }
}
