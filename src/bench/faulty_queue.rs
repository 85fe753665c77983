//! Queues with a planted fault: a measurement that cannot fail measures nothing.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::bench::contender::Contender;
use crate::bench::error::BenchError;
use crate::bench::folder::Folder;
use crate::bench::measure::measure;
use crate::bench::message::BenchMessage;
use crate::bench::message::MessageEnd;
use crate::bench::plan::BenchPlan;
use crate::bench::plan::Options;
use crate::bench::plan::Take;
use crate::bench::progress::BenchProgress;
use crate::bench::workload::Workload;

/// It hands out what has waited longest, to whoever asks, and what failed at once again.
const FIRST: u8 = 0;
/// It hands out what came last.
const LAST: u8 = 1;
/// It loses a byte of every body.
const SHORT: u8 = 2;

/// A queue in memory, without locks and without a disk.
#[derive(Clone)]
struct FaultyQueue<const FAULT: u8> {
    messages: Arc<Mutex<VecDeque<Bytes>>>,
    /// As many permits as there are messages: whoever waits gets one.
    waiting: Arc<Semaphore>,
}

impl<const FAULT: u8> Contender for FaultyQueue<FAULT> {
    const NAME: &'static str = "planted";

    type Batch = Vec<Bytes>;

    async fn open(_folder: &Path, _options: Options) -> Result<Self, BenchError> {
        Ok(FaultyQueue { messages: Arc::default(), waiting: Arc::new(Semaphore::new(0)) })
    }

    async fn send(&self, messages: Vec<BenchMessage>) -> Result<(), BenchError> {
        let count = messages.len();
        let bodies = messages.into_iter().map(|message| match FAULT {
            SHORT => message.body.slice(1..),
            _ => message.body,
        });
        self.messages.lock().unwrap().extend(bodies);
        self.waiting.add_permits(count);
        Ok(())
    }

    async fn receive(&self, _take: Take, _wait: Duration) -> Result<Vec<Bytes>, BenchError> {
        self.waiting.acquire().await.unwrap().forget();
        let mut messages = self.messages.lock().unwrap();
        let next = if FAULT == LAST { messages.pop_back() } else { messages.pop_front() };
        Ok(vec![next.unwrap()])
    }

    fn bodies(batch: &Vec<Bytes>) -> Vec<Bytes> {
        batch.clone()
    }

    async fn settle(&self, batch: Vec<Bytes>, verdicts: Vec<MessageEnd>) -> Result<(), BenchError> {
        for (body, verdict) in batch.into_iter().zip(verdicts) {
            if verdict != MessageEnd::Complete {
                self.messages.lock().unwrap().push_front(body);
                self.waiting.add_permits(1);
            }
        }
        Ok(())
    }

    async fn close(self) -> Result<(), BenchError> {
        Ok(())
    }
}

/// What a run finds wrong with a planted queue.
fn found<const FAULT: u8>(workload: Workload, receivers: u32) -> Option<String> {
    let plan = BenchPlan { receivers, ..BenchPlan::new(workload, Some(500)) };
    let folder = Folder::make(None).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let measured =
        runtime.block_on(measure::<FaultyQueue<FAULT>>(&plan, folder.path(), &BenchProgress::new()));
    measured.err().map(|error| error.to_string())
}

#[test]
fn an_honest_queue_passes() {
    assert_eq!(found::<FIRST>(Workload::Hot, 1), None);
    assert_eq!(found::<FIRST>(Workload::Live, 1), None);
}

#[test]
fn a_queue_that_overtakes_is_found() {
    let found = found::<LAST>(Workload::Hot, 1).unwrap();
    assert!(found.contains("keep the promise that is measured: workflow 0 went on with message"), "{found}");
}

#[test]
fn a_queue_that_hands_out_a_workflow_twice_is_found() {
    let found = found::<FIRST>(Workload::Hot, 8).unwrap();
    assert!(found.contains("keep the promise that is measured"), "{found}");
}

#[test]
fn a_queue_that_tries_again_at_once_is_found() {
    let found = found::<FIRST>(Workload::Retry, 1).unwrap();
    assert!(found.contains("early"), "{found}");
}

#[test]
fn a_queue_that_changes_bodies_is_found() {
    let found = found::<SHORT>(Workload::Live, 1).unwrap();
    assert!(found.contains("255 bytes"), "{found}");
}
