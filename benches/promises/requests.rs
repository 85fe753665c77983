//! Single requests: a send that is acknowledged when it is on disk, and the round trip of one message.

use std::time::Duration;

use criterion::BenchmarkGroup;
use criterion::BenchmarkId;
use criterion::Criterion;
use criterion::Throughput;
use criterion::measurement::WallTime;
use seriatim::Clock;
use seriatim::SystemClock;
use tokio::runtime::Runtime;

use crate::baseline::Sqlite;
use crate::bench::BenchError;
use crate::bench::EmbeddedEngine;
use crate::bench::body::BODY_LEN;
use crate::bench::body::BodyStamp;
use crate::bench::contender::Contender;
use crate::bench::folder::Folder;
use crate::bench::message::BenchMessage;
use crate::bench::message::MessageEnd;
use crate::bench::plan::BenchOrder;
use crate::bench::plan::Options;
use crate::bench::plan::Take;
use crate::bench::raw::RawAppend;

/// Messages in one send.
const BATCH_LENS: [u32; 4] = [1, 16, 128, 1_024];

/// Workflows the messages of a send belong to.
const WORKFLOWS: u32 = 100;

/// Room for the raw append; a full file begins anew.
const RAW_BYTES: usize = 16 << 20;

/// How long one message may be on its way.
const TIMEOUT: Duration = Duration::from_secs(10);

const OPTIONS: Options =
    Options { order: BenchOrder::Arrival, sync_delay: Duration::ZERO, has_history: false };

/// Sends of several lengths by one sender that waits for each acknowledgement.
pub(crate) fn send_is_on_disk(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("send_is_on_disk");
    group.sample_size(10).measurement_time(Duration::from_secs(2));
    for len in BATCH_LENS {
        group.throughput(Throughput::Elements(u64::from(len)));
        send::<EmbeddedEngine>(&mut group, len);
        send::<Sqlite>(&mut group, len);
        let folder = Folder::make(None).expect("a temporary folder");
        let mut raw = RawAppend::preallocate(folder.path(), RAW_BYTES, Duration::ZERO).expect("room for it");
        let batch = vec![0; len as usize * BODY_LEN];
        group.bench_function(BenchmarkId::new("raw", len), |bencher| {
            bencher.iter(|| raw.append(&batch).expect("the disk takes it"));
        });
    }
}

/// Every sample fills a new queue, so that none is measured with what another has left.
fn send<C: Contender>(group: &mut BenchmarkGroup<'_, WallTime>, len: u32) {
    let runtime = Runtime::new().expect("a runtime");
    let fill = async |count: u64| {
        let folder = Folder::make(None)?;
        let queue = C::open(folder.path(), OPTIONS).await?;
        let clock = SystemClock::default();
        for _ in 0..count {
            queue.send(messages(len)).await?;
        }
        let took = clock.elapsed();
        queue.close().await?;
        Ok::<Duration, BenchError>(took)
    };
    group.bench_function(BenchmarkId::new(C::NAME, len), |bencher| {
        bencher.iter_custom(|count| runtime.block_on(fill(count)).expect("the sends succeed"));
    });
}

fn messages(len: u32) -> Vec<BenchMessage> {
    let outgoing = |index| BenchMessage {
        workflow: format!("workflow-{}", index % WORKFLOWS),
        position: None,
        body: BodyStamp::new(index % WORKFLOWS, index, Duration::ZERO).write(),
    };
    (0..len).map(outgoing).collect()
}

/// One message at a time: sent, received and completed, each step on disk before the next.
pub(crate) fn lone_round_trip(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("lone_round_trip");
    group.sample_size(10).measurement_time(Duration::from_secs(2));
    round_trip::<EmbeddedEngine>(&mut group);
    round_trip::<Sqlite>(&mut group);
}

fn round_trip<C: Contender>(group: &mut BenchmarkGroup<'_, WallTime>) {
    let runtime = Runtime::new().expect("a runtime");
    let folder = Folder::make(None).expect("a temporary folder");
    let queue = runtime.block_on(C::open(folder.path(), OPTIONS)).expect("a new queue");
    let once = async || {
        queue.send(messages(1)).await?;
        let batch = queue.receive(Take::Next(1), TIMEOUT).await?;
        assert_eq!(C::bodies(&batch).len(), 1, "the message is there");
        queue.settle(batch, vec![MessageEnd::Complete]).await
    };
    group.bench_function(C::NAME, |bencher| {
        bencher.iter(|| runtime.block_on(once()).expect("the round trip succeeds"));
    });
    runtime.block_on(queue.close()).expect("the queue closes");
}
