//! When an entity was made: by that it is told from another of its name.

use crate::clock::Timestamp;
use crate::engine::QueueView;
use crate::engine::TopicView;

/// When an entity was made, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CreationInstant {
    pub(crate) at: Timestamp,
    /// Whether it may have been earlier: a queue of a cluster is as old as it is on the partitions that answer.
    pub(crate) may_be_earlier: bool,
}

impl CreationInstant {
    /// Whether what was made at an instant may be it.
    pub(crate) fn may_be(self, at: Timestamp) -> bool {
        at == self.at || (self.may_be_earlier && at < self.at)
    }
}

impl From<&QueueView> for CreationInstant {
    fn from(view: &QueueView) -> CreationInstant {
        CreationInstant { at: view.created_at, may_be_earlier: !view.missing_partitions.is_empty() }
    }
}

/// All partitions have the same instant of a topic.
impl From<&TopicView> for CreationInstant {
    fn from(view: &TopicView) -> CreationInstant {
        CreationInstant { at: view.created_at, may_be_earlier: false }
    }
}
