//! Pages of what is looked at.

use std::sync::Arc;

use crate::engine::rules::audit::AuditEntry;
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;
#[cfg(feature = "daemon")]
use crate::engine::view::MessageStatus;
use crate::engine::view::MessageView;
use crate::id::SequenceNumber;
use crate::limits;

/// A page of messages, bounded in number and bytes.
pub(crate) struct Page {
    pub(crate) views: Vec<MessageView>,
    limit: usize,
    bytes: usize,
}

impl Page {
    pub(crate) fn new(limit: usize) -> Page {
        Page { views: Vec::new(), limit: limit.min(limits::PAGE_MAX), bytes: 0 }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.views.len() < self.limit && self.bytes < limits::RECEIVE_BYTES_MAX
    }

    pub(crate) fn add(&mut self, view: MessageView) {
        self.bytes += view.body.len() + view.headers.len();
        self.views.push(view);
    }
}

/// Messages that are no dead letters.
#[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only endpoints of the daemon ask so"))]
pub(crate) struct LiveMessages {
    pub(crate) views: Vec<MessageView>,
    /// How many were looked at for them.
    pub(crate) looked_at: usize,
    /// The number from which on there may be others.
    pub(crate) next: Option<SequenceNumber>,
}

#[cfg(feature = "daemon")]
impl LiveMessages {
    /// Those of a page of messages.
    pub(crate) fn of(mut page: Vec<MessageView>) -> LiveMessages {
        let (looked_at, next) = (page.len(), page.last().map(|last| last.sequence_number.next()));
        page.retain(|view| !matches!(view.status, MessageStatus::DeadLettered(_)));
        LiveMessages { views: page, looked_at, next }
    }
}

/// Up to `limit` entries of the audit in order of number, after the given one.
pub(crate) fn audit(records: &dyn Records, after: u64, limit: usize) -> Read<Vec<AuditEntry>> {
    let page = records.audit_after(after, limit.min(limits::PAGE_MAX))?;
    Ok(page.into_iter().map(Arc::unwrap_or_clone).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;
    use crate::queue::QueueOptions;

    #[tokio::test]
    async fn a_page_of_messages_is_bounded_by_the_bytes_of_their_headers_too() {
        let (engine, _clock) = crate::testing::engine().await.unwrap();
        let queue = engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
        let text = "x".repeat(60_000);
        let message = Message::new("").property("p", text.clone());
        let most = limits::RECEIVE_BYTES_MAX / text.len() + 1;
        queue.send_batch(vec![message; most + 20]).await.unwrap();
        let page = queue.peek(SequenceNumber::new(0), limits::PAGE_MAX).await.unwrap();
        assert!(page.len() > 1 && page.len() <= most, "a page has {} messages", page.len());
        engine.close().await;
    }
}
