//! What a run came to, as one line of JSON.

use serde::Deserialize;
use serde::Serialize;

use crate::bench::body::BODY_LEN;
use crate::bench::meter::Usage;
use crate::bench::plan::BenchPlan;
use crate::bench::spread::Spread;
use crate::bench::workload::Workload;

/// What a run came to. What a workload or a machine cannot measure is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BenchOutcome {
    pub(crate) workload: Workload,
    pub(crate) contender: String,
    pub(crate) workflows: u32,
    /// Messages sent and handled in the time that was measured.
    pub(crate) messages: u64,
    pub(crate) body_bytes: usize,
    pub(crate) seconds: f64,
    pub(crate) messages_per_second: f64,
    /// The same for a raw append.
    pub(crate) raw_messages_per_second: f64,
    /// This rate by that of the raw append; for latency, the raw append's time by this one's.
    pub(crate) ratio_to_raw: f64,
    #[serde(flatten)]
    pub(crate) costs: Costs,
    #[serde(flatten)]
    pub(crate) particulars: Particulars,
}

/// What a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Costs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu_us_per_message: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory_bytes_peak: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) written_bytes_per_body_byte: Option<f64>,
}

/// What only some workloads measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Particulars {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sent_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) drained_per_second: Option<f64>,
    /// How many times as long as the first tenth the last one took to be drained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_tenth_to_first: Option<f64>,
    /// From the send call to the start of the handler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latency: Option<Spread>,
    /// How much later than due a failed message came back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_late: Option<Spread>,
    /// Messages that were stored beside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stored_messages: Option<u64>,
    /// How many of those were purged in a second, at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) purged_per_second: Option<f64>,
    /// The rate with nothing stored beside, or without a history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) without_per_second: Option<f64>,
    /// How much slower it is because of that; the median of the rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) loss_percent: Option<f64>,
}

impl BenchOutcome {
    pub(crate) fn new(
        plan: &BenchPlan,
        contender: &str,
        messages: u64,
        usage: &Usage,
        particulars: Particulars,
    ) -> BenchOutcome {
        let bodies_bytes = messages as f64 * BODY_LEN as f64;
        BenchOutcome {
            workload: plan.workload,
            contender: contender.to_owned(),
            workflows: plan.workflows,
            messages,
            body_bytes: BODY_LEN,
            seconds: usage.time.as_secs_f64(),
            messages_per_second: messages as f64 / usage.time.as_secs_f64(),
            raw_messages_per_second: 0.0,
            ratio_to_raw: 0.0,
            costs: Costs {
                cpu_us_per_message: usage.cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / messages as f64),
                memory_bytes_peak: usage.memory_bytes_peak,
                written_bytes_per_body_byte: usage.written_bytes.map(|bytes| bytes as f64 / bodies_bytes),
            },
            particulars,
        }
    }

    /// One line.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("an outcome has no part that is not JSON")
    }
}
