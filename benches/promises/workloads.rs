//! Whole workloads, small: order and one at a time, with many workflows, with one, with failures, shuffled.

use std::time::Duration;

use criterion::BenchmarkGroup;
use criterion::Criterion;
use criterion::SamplingMode;
use criterion::Throughput;
use criterion::measurement::WallTime;
use tokio::runtime::Runtime;

use crate::baseline::Sqlite;
use crate::bench::BenchError;
use crate::bench::BenchPlan;
use crate::bench::EmbeddedEngine;
use crate::bench::Workload;
use crate::bench::contender::Contender;
use crate::bench::folder::Folder;
use crate::bench::measure::measure;
use crate::bench::progress::BenchProgress;
use crate::bench::raw::append_all;

/// What is promised, the workload that shows it, and with how many messages.
const PROMISES: [(&str, Workload, u32); 6] = [
    ("ordered_throughput_1000_workflows", Workload::Live, 10_000),
    ("ordered_throughput_1_workflow", Workload::Hot, 10_000),
    ("a_backlog_is_drained_in_order", Workload::Backlog, 10_000),
    ("on_disk_before_the_next_starts", Workload::Strict, 200),
    ("retried_in_place", Workload::Retry, 10_000),
    ("shuffled_arrivals_in_order", Workload::Shuffled, 10_000),
];

/// All of them.
pub(crate) fn all(criterion: &mut Criterion) {
    for (promise, workload, messages) in PROMISES {
        let plan = BenchPlan::new(workload, Some(messages));
        let mut group = criterion.benchmark_group(promise);
        group
            .sample_size(10)
            .sampling_mode(SamplingMode::Flat)
            .throughput(Throughput::Elements(plan.messages()));
        run::<EmbeddedEngine>(&mut group, &plan);
        run::<Sqlite>(&mut group, &plan);
        group.bench_function("raw", |bencher| {
            bencher.iter_custom(|count| sum(count, || raw(&plan)).expect("the disk takes it"));
        });
    }
}

/// Runs a workload; what is timed is the part that its plan says.
fn run<C: Contender>(group: &mut BenchmarkGroup<'_, WallTime>, plan: &BenchPlan) {
    let runtime = Runtime::new().expect("a runtime");
    let once = || {
        let folder = Folder::make(None)?;
        let outcome = runtime.block_on(measure::<C>(plan, folder.path(), &BenchProgress::new()))?;
        Ok(Duration::from_secs_f64(outcome.seconds))
    };
    group.bench_function(C::NAME, |bencher| {
        bencher.iter_custom(|count| sum(count, once).expect("every promise is kept"));
    });
}

fn raw(plan: &BenchPlan) -> Result<Duration, BenchError> {
    let folder = Folder::make(None)?;
    Ok(append_all(folder.path(), plan.messages(), plan.raw_len(), plan.sync_delay)?.iter().sum())
}

fn sum(count: u64, once: impl Fn() -> Result<Duration, BenchError>) -> Result<Duration, BenchError> {
    (0..count).map(|_| once()).sum()
}
