//! A walk over the workflows of a queue, in order of ID: bounded in what it finds and in what it looks at.

use std::cmp::Ordering;

use crate::engine::Queue;
use crate::engine::WorkflowView;
use crate::id::WorkflowId;
use crate::limits;
use crate::server::answer::HttpRefusal;

/// A walk over workflows that match something.
pub(crate) struct WorkflowWalk {
    pub(crate) after: Option<WorkflowId>,
    pub(crate) prefix: Option<String>,
    /// Workflows that may still be looked at.
    pub(crate) looks: usize,
    /// Whether only workflows match that the engine knows to be able to stand still.
    pub(crate) is_of_standing: bool,
}

/// What one step of a walk has found.
pub(crate) struct WalkStep {
    pub(crate) views: Vec<WorkflowView>,
    /// Whether there is nothing behind it.
    pub(crate) is_last: bool,
}

impl WorkflowWalk {
    pub(crate) fn new(after: Option<String>, prefix: Option<String>) -> Result<WorkflowWalk, HttpRefusal> {
        let after = match (after.filter(|after| !after.is_empty()), &prefix) {
            (Some(after), _) => Some(WorkflowId::new(after)?),
            (None, Some(prefix)) => just_before(prefix).and_then(|start| WorkflowId::new(start).ok()),
            (None, None) => None,
        };
        Ok(WorkflowWalk { after, prefix, looks: limits::HTTP_LOOKS_MAX, is_of_standing: false })
    }

    /// Takes up to `limit` workflows that match. The walk stands behind the last one it has looked at.
    pub(crate) async fn next(
        &mut self,
        queue: &Queue,
        limit: usize,
        matches: impl Fn(&WorkflowView) -> bool,
    ) -> Result<WalkStep, HttpRefusal> {
        let mut found = WalkStep { views: Vec::new(), is_last: false };
        while found.views.len() < limit && self.looks > 0 && !found.is_last {
            let page = self.page(queue, limits::HTTP_PAGE.min(self.looks)).await?;
            found.is_last = page.len() < limits::HTTP_PAGE.min(self.looks);
            for view in page {
                self.looks -= 1;
                self.after.clone_from(&view.workflow_id);
                match self.compare(&view) {
                    Ordering::Less => {}
                    Ordering::Equal if matches(&view) => found.views.push(view),
                    Ordering::Equal => {}
                    Ordering::Greater => {
                        found.is_last = true;
                        return Ok(found);
                    }
                }
                if found.views.len() == limit {
                    found.is_last = false;
                    break;
                }
            }
        }
        Ok(found)
    }

    async fn page(&mut self, queue: &Queue, limit: usize) -> Result<Vec<WorkflowView>, HttpRefusal> {
        if self.is_of_standing {
            match queue.standing_workflows(self.after.as_ref(), limit).await? {
                Some(page) => return Ok(page),
                // Not all of them are known yet.
                None => self.is_of_standing = false,
            }
        }
        Ok(queue.workflows(self.after.as_ref(), limit).await?)
    }

    /// Whether a workflow stands before those whose ID begins as asked, among them or behind them.
    fn compare(&self, view: &WorkflowView) -> Ordering {
        let id = view.workflow_id.as_ref().map_or("", WorkflowId::as_str);
        match &self.prefix {
            Some(prefix) if !id.starts_with(prefix) => id.cmp(prefix),
            _ => Ordering::Equal,
        }
    }

    /// Where the next walk begins after, if there is more.
    pub(crate) fn rest(self, is_last: bool) -> Option<String> {
        self.after.filter(|_| !is_last).map(|id| id.to_string())
    }
}

/// A text with nothing of a usual length between it and the prefix, where there is one.
fn just_before(prefix: &str) -> Option<String> {
    let last = prefix.chars().next_back()?;
    let lower = char::from_u32(u32::from(last).checked_sub(1)?)?;
    let (beginning, _) = prefix.split_at(prefix.len() - last.len_utf8());
    Some(format!("{beginning}{lower}\u{10ffff}"))
}
