//! A workload with its numbers: how many messages, tasks and batches.

use std::time::Duration;

use crate::bench::body::Noise;
use crate::bench::workload::Workload;

/// Messages one send or one run takes at most: as many as the engine allows.
const LONGEST: usize = 1_024;
/// Tasks that send, and tasks that receive: enough that one prepares while another waits for the disk.
const TASKS: u32 = 4;
/// Messages in a send of one of several tasks, so that together they are a full batch.
const SHARE: usize = LONGEST / TASKS as usize;
/// Tasks that wait for a message when latency is measured: one is always free.
const ATTENTIVE: u32 = 8;
/// A message of so many fails in `retry`.
const FAILS_EVERY: u32 = 50;
/// How often it fails.
const FAILURES: u32 = 2;
/// How long it then waits.
const RETRY_DELAY: Duration = Duration::from_millis(50);
/// Positions within which arrivals are shuffled.
const WINDOW: u32 = 8;
/// Messages a second in `latency`: what a disk can sync one by one.
const PACE_PER_SECOND: u32 = 500;

/// A workload with its numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BenchPlan {
    pub(crate) workload: Workload,
    pub(crate) order: BenchOrder,
    /// The number of its first workflow, so that several rounds in one queue do not meet.
    pub(crate) first_workflow: u32,
    pub(crate) workflows: u32,
    /// Messages of each workflow.
    pub(crate) each: u32,
    pub(crate) senders: u32,
    pub(crate) send_len: usize,
    pub(crate) receivers: u32,
    pub(crate) take: Take,
    /// Workflows that are stored beside, and how many messages of each.
    pub(crate) stored: (u32, u32),
    /// What every fsync takes longer, where a contender and the raw append can do that.
    pub(crate) sync_delay: Duration,
}

/// How a queue is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// In which order the messages of a workflow are handed out.
    pub(crate) order: BenchOrder,
    /// What every fsync takes longer than it does, to see what a slower disk would change.
    pub(crate) sync_delay: Duration,
    /// Whether it remembers how its messages ended, if it can.
    pub(crate) has_history: bool,
}

/// In which order the messages of a workflow are handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BenchOrder {
    Arrival,
    Position,
}

/// What to receive at most.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Take {
    /// The next messages of so many workflows.
    Next(usize),
    /// So many consecutive messages of one workflow.
    Run(usize),
}

impl BenchPlan {
    /// How it asks for its queue.
    pub(crate) fn options(&self) -> Options {
        Options { order: self.order, sync_delay: self.sync_delay, has_history: false }
    }

    /// The plan of a workload, for so many messages or the usual number.
    pub(crate) fn new(workload: Workload, messages: Option<u32>) -> BenchPlan {
        let (workflows, usual) = match workload {
            Workload::Live
            | Workload::Backlog
            | Workload::Retry
            | Workload::Shuffled
            | Workload::Processor => (1_000, 100_000),
            // Two rounds that are not measured fill what is remembered, so that each message puts an older one out.
            Workload::History => (1_000, 50_000),
            Workload::Wide => (10_000, 200_000),
            Workload::Growth => (1, 1_000_000),
            Workload::Hot => (1, 100_000),
            Workload::Strict => (1, 5_000),
            Workload::Latency => (100, 5_000),
            Workload::Purge => (100, 10_000),
            Workload::Stuck | Workload::Stored | Workload::Idle => (1_000, 20_000),
        };
        let total = messages.unwrap_or(usual).max(1);
        let workflows = workflows.min(total);
        let stored = |workflows: u32, each: u32| {
            // What is stored shrinks with what is sent, so that a small run is small in all.
            let each = u64::from(each) * u64::from(total.min(usual)) / u64::from(usual);
            (workflows, u32::try_from(each.max(1)).unwrap_or(u32::MAX))
        };
        let plan = BenchPlan {
            workload,
            order: BenchOrder::Arrival,
            first_workflow: 0,
            workflows,
            each: total / workflows,
            senders: TASKS.min(workflows),
            send_len: SHARE,
            receivers: TASKS,
            take: Take::Next(SHARE),
            stored: (0, 0),
            sync_delay: Duration::ZERO,
        };
        match workload {
            Workload::Live
            | Workload::Backlog
            | Workload::Retry
            | Workload::History
            | Workload::Processor => plan,
            Workload::Growth | Workload::Hot => {
                BenchPlan { send_len: LONGEST, receivers: 1, take: Take::Run(LONGEST), ..plan }
            }
            Workload::Strict => BenchPlan { send_len: LONGEST, receivers: 1, take: Take::Next(1), ..plan },
            Workload::Latency => BenchPlan {
                senders: workflows,
                send_len: 1,
                receivers: ATTENTIVE,
                take: Take::Next(16),
                ..plan
            },
            Workload::Purge => BenchPlan {
                order: BenchOrder::Position,
                senders: workflows,
                send_len: 1,
                receivers: ATTENTIVE,
                take: Take::Next(16),
                stored: stored(1, 1_000_000),
                ..plan
            },
            Workload::Wide | Workload::Shuffled => BenchPlan { order: BenchOrder::Position, ..plan },
            Workload::Stuck => BenchPlan { order: BenchOrder::Position, stored: stored(1, 100_000), ..plan },
            Workload::Stored | Workload::Idle => {
                BenchPlan { order: BenchOrder::Position, stored: stored(10_000, 100), ..plan }
            }
        }
    }

    /// How many messages are sent and handled.
    pub(crate) fn messages(&self) -> u64 {
        u64::from(self.workflows) * u64::from(self.each)
    }

    /// How many messages are stored beside those.
    pub(crate) fn stored_messages(&self) -> u64 {
        u64::from(self.stored.0) * u64::from(self.stored.1)
    }

    /// How many messages are appended by one raw write: what all senders have under way at once.
    pub(crate) fn raw_len(&self) -> usize {
        match self.workload {
            Workload::Strict | Workload::Latency | Workload::Purge => 1,
            _ => self.send_len * self.senders as usize,
        }
    }

    /// Which index of a workflow arrives in a step.
    pub(crate) fn arrives(&self, workflow: u32, step: u32) -> u32 {
        if self.workload != Workload::Shuffled {
            return step;
        }
        let start = step / WINDOW * WINDOW;
        let len = WINDOW.min(self.each - start);
        let mut window: [u32; WINDOW as usize] = std::array::from_fn(|at| at as u32);
        let mut noise = Noise(u64::from(workflow) << 32 | u64::from(start));
        for last in (1..len).rev() {
            window.swap(last as usize, (noise.next() % u64::from(last + 1)) as usize);
        }
        start + window[(step - start) as usize]
    }

    /// After which delay a message is to be tried again that has failed so often; `None` when it is to succeed.
    pub(crate) fn retry(&self, workflow: u32, index: u32, failures: u32) -> Option<Duration> {
        let is_chosen =
            self.workload == Workload::Retry && (workflow + index) % FAILS_EVERY == FAILS_EVERY - 1;
        (is_chosen && failures < FAILURES).then_some(RETRY_DELAY)
    }

    /// When a message is due to be sent, from the start of the run.
    pub(crate) fn due(&self, workflow: u32, step: u32) -> Duration {
        Duration::from_secs(1) / PACE_PER_SECOND * (step * self.workflows + workflow)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_small_run_keeps_its_shape() {
        for workload in Workload::all() {
            for messages in [1, 7, 2_000] {
                let plan = BenchPlan::new(*workload, Some(messages));
                assert!(plan.each > 0 && plan.workflows > 0, "{plan:?}");
                assert!(plan.messages() <= u64::from(messages), "{plan:?}");
            }
        }
        assert_eq!(BenchPlan::new(Workload::Stuck, None).stored_messages(), 100_000);
        assert_eq!(BenchPlan::new(Workload::Stored, None).stored_messages(), 1_000_000);
        assert_eq!(BenchPlan::new(Workload::Idle, None).stored_messages(), 1_000_000);
        assert_eq!(BenchPlan::new(Workload::Purge, None).stored_messages(), 1_000_000);
    }

    #[test]
    fn shuffled_arrivals_are_complete_and_stay_in_their_window() {
        let plan = BenchPlan::new(Workload::Shuffled, Some(21_000));
        for workflow in [0, 999] {
            let arrivals: Vec<u32> = (0..plan.each).map(|step| plan.arrives(workflow, step)).collect();
            assert_eq!(arrivals.iter().collect::<BTreeSet<_>>().len(), 21);
            assert!(arrivals.iter().zip(0..).all(|(index, step)| index / WINDOW == step / WINDOW));
            assert!(!arrivals.is_sorted(), "{arrivals:?}");
        }
    }

    #[test]
    fn every_fiftieth_message_fails_twice() {
        let plan = BenchPlan::new(Workload::Retry, None);
        let failing = (0..1_000).filter(|workflow| plan.retry(*workflow, 3, 0).is_some()).count();
        assert_eq!(failing, 20);
        assert!(plan.retry(49, 0, 1).is_some());
        assert!(plan.retry(49, 0, 2).is_none());
    }
}
