//! Messages without a workflow that do not go on: one row for each queue and cause, because nothing waits behind any of them.

use crate::api::views::BlockedCause;
use crate::api::views::BlockedView;
use crate::api::views::HeldBackView;
use crate::engine::MessageView;
use crate::engine::Queue;
use crate::engine::QueueView;
use crate::engine::WorkflowView;
use crate::id::SequenceNumber;
use crate::limits;
use crate::queue::Order;
use crate::server::answer::HttpRefusal;
use crate::server::blocked_reason::held_or_failed_because;

/// Messages of a queue that have no workflow, as far as a limited look goes.
#[derive(Default)]
pub(crate) struct UnorderedSummary {
    /// How many wait for their retry.
    retry: u64,
    /// How many are ready.
    ready: u64,
    /// The first that waits for its retry.
    first: Option<SequenceNumber>,
    /// How many were looked at.
    pub(crate) looks: usize,
}

impl UnorderedSummary {
    /// Whether there can be a row for a cause that is wanted, as far as the counters know: without, nothing is looked at.
    pub(crate) fn is_needed(
        view: &QueueView,
        held_back: Option<&HeldBackView>,
        wants: impl Fn(BlockedCause) -> bool,
    ) -> bool {
        let of_ready = || BlockedView::show_ready_alone(view, held_back, view.counts.ready);
        (view.counts.retry > 0 && wants(BlockedCause::Retry))
            || of_ready().is_some_and(|row| wants(row.cause))
    }

    /// Looks at those of a queue whose last error has this text in it. Of a queue without order the counters know how many
    /// they are.
    pub(crate) async fn look(
        queue: &Queue,
        view: &QueueView,
        reason: Option<&str>,
    ) -> Result<UnorderedSummary, HttpRefusal> {
        let mut alone = UnorderedSummary::default();
        let is_unordered = view.options.order == Order::None;
        if is_unordered && view.counts.retry + view.counts.ready == 0 {
            return Ok(alone);
        }
        let mut from = SequenceNumber::new(0);
        for _ in 0..limits::HTTP_LOOKS_MAX / limits::HTTP_PAGE {
            let page = queue.alone(from, limits::HTTP_PAGE).await?;
            let Some((last, _)) = page.last() else { break };
            from = last.next();
            alone.looks += page.len();
            for (sequence, seen) in &page {
                alone.note(*sequence, seen, reason);
            }
            if is_unordered && reason.is_none() && (alone.first.is_some() || view.counts.retry == 0) {
                break;
            }
        }
        if is_unordered && reason.is_none() {
            (alone.retry, alone.ready) = (view.counts.retry, view.counts.ready);
        }
        Ok(alone)
    }

    fn note(&mut self, sequence: SequenceNumber, seen: &WorkflowView, reason: Option<&str>) {
        let says = |text: &str| held_or_failed_because(seen).any(|found_text| found_text.contains(text));
        match BlockedCause::of(seen) {
            Some(BlockedCause::Retry) if reason.is_none_or(says) => {
                self.retry += 1;
                self.first.get_or_insert(sequence);
            }
            None | Some(BlockedCause::RateLimited) if reason.is_none() => self.ready += 1,
            _ => {}
        }
    }

    /// The row for the most serious cause that is wanted.
    pub(crate) async fn row(
        &self,
        queue: &Queue,
        view: &QueueView,
        held_back: Option<&HeldBackView>,
        wants: impl Fn(BlockedCause) -> bool,
    ) -> Result<Option<BlockedView>, HttpRefusal> {
        if self.retry > 0 && wants(BlockedCause::Retry) {
            let first = self.first_message(queue).await?;
            return Ok(Some(BlockedView::show_alone(&view.name, self.retry, first.as_ref())));
        }
        let row = BlockedView::show_ready_alone(view, held_back, self.ready);
        Ok(row.filter(|row| self.ready > 0 && wants(row.cause)))
    }

    async fn first_message(&self, queue: &Queue) -> Result<Option<MessageView>, HttpRefusal> {
        let Some(first) = self.first else { return Ok(None) };
        let found = queue.peek(first, 1).await?.pop();
        Ok(found.filter(|message| message.sequence_number == first))
    }
}
