//! How far an outbox is copied, and what keeps it from going on, as the API shows it.

use crate::api::views::SourceView;
use crate::daemon::outbox_of_queue::OutboxOfQueue;
use crate::limits;
use crate::mutex::Mutex;

/// How an outbox is.
#[derive(Debug, Default)]
pub(crate) struct OutboxStatus(Mutex<OutboxFigures>);

#[derive(Clone, Debug, Default)]
struct OutboxFigures {
    copied_through: Option<i64>,
    /// Rows copied since the daemon has started.
    copied: u64,
    behind: i64,
    waits_for: usize,
    problem: Option<String>,
}

impl OutboxStatus {
    /// A look has found so many rows behind the last that is copied.
    pub(crate) fn looked(&self, copied_through: Option<i64>, behind: i64, waits_for: usize) {
        self.change(|known| {
            (known.copied_through, known.behind, known.waits_for) = (copied_through, behind, waits_for);
        });
    }

    /// A look has found so many rows, behind which there are more; how many is not known yet.
    pub(crate) fn found(&self, copied_through: Option<i64>, rows: i64) {
        self.change(|known| {
            (known.copied_through, known.behind) = (copied_through, known.behind.max(rows));
        });
    }

    /// Rows were copied.
    pub(crate) fn copied(&self, through: i64, count: usize) {
        self.change(|known| {
            known.copied_through = Some(through);
            known.copied += count as u64;
            known.behind = known.behind.saturating_sub(i64::try_from(count).unwrap_or(i64::MAX));
        });
    }

    /// It cannot go on. The same problem is logged once.
    pub(crate) fn failed(&self, of_queue: &OutboxOfQueue, problem: &str) {
        let before = self.change(|known| known.problem.replace(problem.to_owned()));
        if before.as_deref() != Some(problem) {
            tracing::error!(queue = %of_queue.queue, problem, "failed to copy from the queue's source; trying again");
        }
    }

    /// It goes on.
    pub(crate) fn goes_on(&self, of_queue: &OutboxOfQueue) {
        if self.change(|known| known.problem.take()).is_some() {
            tracing::info!(queue = %of_queue.queue, "copying from the queue's source again");
        }
    }

    /// Rows that were copied since the daemon has started, and rows that wait to be.
    pub(crate) fn counts(&self) -> (u64, u64, bool) {
        self.change(|known| {
            (known.copied, u64::try_from(known.behind).unwrap_or_default(), known.problem.is_some())
        })
    }

    pub(crate) fn show(&self, of_queue: &OutboxOfQueue) -> SourceView {
        let known = self.change(|known| known.clone());
        SourceView {
            name: of_queue.outbox.name.clone(),
            table: of_queue.outbox.table.clone(),
            copied_through: known.copied_through,
            rows_behind: u64::try_from(known.behind).unwrap_or_default(),
            more_behind: known.behind >= limits::SOURCE_LAG_ROWS,
            waits_for_transactions: known.waits_for,
            problem: known.problem,
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut OutboxFigures) -> T) -> T {
        change(&mut self.0.lock())
    }
}
