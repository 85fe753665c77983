//! Pages of what is looked at.

use std::sync::Arc;

use crate::engine::rules::audit::AuditEntry;
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;
use crate::engine::view::MessageView;
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
        self.bytes += view.body.len();
        self.views.push(view);
    }
}

/// Up to `limit` entries of the audit in order of number, after the given one.
pub(crate) fn audit(records: &dyn Records, after: u64, limit: usize) -> Read<Vec<AuditEntry>> {
    let page = records.audit_after(after, limit.min(limits::PAGE_MAX))?;
    Ok(page.into_iter().map(Arc::unwrap_or_clone).collect())
}
