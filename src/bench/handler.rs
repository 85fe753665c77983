//! What handles the messages of a run: it judges each, fails the chosen ones, and counts.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use seriatim::Clock;
use seriatim::SystemClock;
use tokio::sync::watch;

use crate::bench::body::BodyStamp;
use crate::bench::checker::Checker;
use crate::bench::error::BenchError;
use crate::bench::message::MessageEnd;
use crate::bench::plan::BenchPlan;
use crate::bench::progress::BenchProgress;
use crate::bench::workload::Workload;

/// The handler of one run, shared by the tasks that receive.
pub(crate) struct BenchHandler {
    plan: BenchPlan,
    checker: Checker,
    /// The run's clock; senders stamp by the same.
    pub(crate) clock: SystemClock,
    settled: AtomicU64,
    all_settled: watch::Sender<bool>,
    delays: Mutex<Vec<Duration>>,
    /// When each tenth of the messages was settled.
    tenths: Mutex<Vec<Duration>>,
    progress: BenchProgress,
}

impl BenchHandler {
    pub(crate) fn new(plan: &BenchPlan, clock: SystemClock, progress: &BenchProgress) -> BenchHandler {
        BenchHandler {
            plan: *plan,
            checker: Checker::new(plan.first_workflow, plan.workflows, plan.each),
            clock,
            settled: AtomicU64::new(0),
            all_settled: watch::Sender::new(false),
            delays: Mutex::default(),
            tenths: Mutex::default(),
            progress: progress.clone(),
        }
    }

    /// Handles what one receive brought, and says how each message ends.
    pub(crate) async fn handle(&self, bodies: &[Bytes]) -> Result<Vec<MessageEnd>, BenchError> {
        let stamps: Vec<BodyStamp> =
            bodies.iter().map(|body| BodyStamp::read(body)).collect::<Result<_, _>>()?;
        for holding in stamps.chunk_by(|one, next| one.workflow == next.workflow) {
            self.checker.take(holding[0].workflow)?;
        }
        // Whoever else has one of these workflows now gets a chance to show it.
        tokio::task::yield_now().await;
        let mut verdicts = Vec::with_capacity(stamps.len());
        for holding in stamps.chunk_by(|one, next| one.workflow == next.workflow) {
            for stamp in holding {
                verdicts.push(self.handle_one(*stamp)?);
            }
            self.checker.leave(holding[0].workflow)?;
        }
        Ok(verdicts)
    }

    fn handle_one(&self, stamp: BodyStamp) -> Result<MessageEnd, BenchError> {
        let now = self.clock.elapsed();
        let begun = self.checker.begin(stamp.workflow, stamp.index, now)?;
        let delay = match self.plan.workload {
            Workload::Latency | Workload::Purge => Some(now.saturating_sub(stamp.sent())),
            _ => begun.late,
        };
        if let Some(delay) = delay {
            self.delays.lock().unwrap_or_else(PoisonError::into_inner).push(delay);
        }
        match self.plan.retry(stamp.workflow, stamp.index, begun.failures) {
            Some(delay) => {
                self.checker.failed(stamp.workflow, self.clock.elapsed() + delay)?;
                Ok(MessageEnd::Retry(delay))
            }
            None => {
                self.checker.completed(stamp.workflow)?;
                Ok(MessageEnd::Complete)
            }
        }
    }

    /// Notes that so many completions are on disk.
    pub(crate) fn settled(&self, count: u64) {
        let settled = self.settled.fetch_add(count, Ordering::Relaxed) + count;
        self.progress.go_on(count);
        let tenth = |settled: u64| settled * 10 / self.plan.messages().max(1);
        if tenth(settled) > tenth(settled - count) {
            let mut tenths = self.tenths.lock().unwrap_or_else(PoisonError::into_inner);
            tenths.resize(usize::try_from(tenth(settled)).unwrap_or(usize::MAX), self.clock.elapsed());
        }
        if settled >= self.plan.messages() {
            self.all_settled.send_replace(true);
        }
    }

    /// How long the run has lasted.
    pub(crate) fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    /// How many times as long as the first tenth, which began at an instant, the last one took.
    pub(crate) fn last_to_first(&self, began: Duration) -> Option<f64> {
        let tenths = self.tenths.lock().unwrap_or_else(PoisonError::into_inner);
        let [first, .., before_last, last] = tenths[..] else { return None };
        Some((last - before_last).as_secs_f64() / first.checked_sub(began)?.as_secs_f64())
    }

    /// How many completions are on disk.
    pub(crate) fn settled_count(&self) -> u64 {
        self.settled.load(Ordering::Relaxed)
    }

    /// How many are missing.
    pub(crate) fn missing(&self) -> u64 {
        self.plan.messages().saturating_sub(self.settled_count())
    }

    /// Waits until all messages of the run are settled.
    pub(crate) async fn all_settled(&self) {
        let mut all_settled = self.all_settled.subscribe();
        let _ = all_settled.wait_for(|is_so| *is_so).await;
    }

    /// Judges the end, and gives the delays that were measured.
    pub(crate) fn end(&self) -> Result<Vec<Duration>, BenchError> {
        self.checker.check_end()?;
        Ok(std::mem::take(&mut *self.delays.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}
