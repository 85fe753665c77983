//! How many workflows wait for a predecessor: no event says that they have begun to, only that it has taken too long.

use std::collections::BTreeMap;

use crate::api::views::BlockedCause;
use crate::daemon::blocked_monitor::stop_cause;
use crate::daemon::membership::Membership;
use crate::engine::Client;
use crate::engine::QueueView;
use crate::engine::WorkflowView;
use crate::error::QueueError;
use crate::id::QueueName;
use crate::id::WorkflowId;
use crate::limits;
use crate::mutex::Mutex;

/// Counts of workflows that wait for a predecessor, as they were found lately.
#[derive(Default)]
pub(crate) struct Gaps {
    walk: Mutex<GapWalk>,
}

/// A walk that goes round and round through the queues in which messages are early, a part each time.
#[derive(Clone, Default)]
struct GapWalk {
    known: BTreeMap<QueueName, u64>,
    /// Where it stands: the queue, the last workflow it has looked at, and how many it has found in this queue so far.
    at: Option<(QueueName, Option<WorkflowId>, u64)>,
}

impl Gaps {
    /// Looks at a limited number of workflows.
    pub(crate) async fn look(
        &self,
        client: &Client,
        membership: &Membership,
        queues: &[QueueView],
    ) -> Result<(), QueueError> {
        let mut walk = self.walk.lock().clone();
        let has_early = |view: &&QueueView| view.counts.early > 0;
        walk.known.retain(|name, _| queues.iter().filter(has_early).any(|view| view.name == *name));
        let mut looks = limits::GAP_LOOKS;
        let mut at = walk.at.take();
        for view in queues.iter().filter(has_early) {
            let (mut after, mut found) = match &at {
                Some((queue, ..)) if view.name < *queue => continue,
                Some((queue, after, found)) if view.name == *queue => (after.clone(), *found),
                _ => (None, 0),
            };
            at = None;
            let queue = client.queue(view.name.as_str())?;
            loop {
                let page_size = limits::HTTP_PAGE.min(looks);
                let page = queue.workflows(after.as_ref(), page_size).await?;
                let is_counted = |workflow: &&WorkflowView| {
                    let is_here = |id| membership.has(&view.name, id);
                    stop_cause(workflow) == Some(BlockedCause::Gap)
                        && workflow.workflow_id.as_ref().is_none_or(is_here)
                };
                found += page.iter().filter(is_counted).count() as u64;
                looks -= page.len().min(looks);
                if page.len() < page_size {
                    walk.known.insert(view.name.clone(), found);
                    break;
                }
                after = page.last().and_then(|last| last.workflow_id.clone());
                if looks == 0 {
                    walk.at = Some((view.name.clone(), after, found));
                    *self.walk.lock() = walk;
                    return Ok(());
                }
            }
        }
        *self.walk.lock() = walk;
        Ok(())
    }

    /// How many were found in each queue.
    pub(crate) fn counts(&self) -> BTreeMap<QueueName, u64> {
        self.walk.lock().known.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;
    use crate::queue::QueueOptions;

    #[tokio::test]
    async fn gaps_are_counted_in_parts_and_forgotten_when_they_close() {
        let (engine, _) = crate::testing::engine().await.unwrap();
        let (client, gaps) = (engine.client(), Gaps::default());
        let count = limits::GAP_LOOKS + 10;
        for name in ["a", "b"] {
            let queue = client.create_queue(name, QueueOptions::by_position()).await.unwrap();
            let early = |number| Message::new("x").workflow(format!("w{number:05}")).position(2);
            let messages: Vec<Message> = (0..if name == "a" { count } else { 1 }).map(early).collect();
            for part in messages.chunks(1_000) {
                queue.send_batch(part.to_vec()).await.unwrap();
            }
        }
        let alone = Membership::default();
        let look = async || {
            gaps.look(client, &alone, &client.queues(None, 10).await.unwrap()).await.unwrap();
        };
        let counts =
            || gaps.counts().into_iter().map(|(name, count)| (name.to_string(), count)).collect::<Vec<_>>();
        look().await;
        assert_eq!(counts(), [], "it stands in the first queue");
        look().await;
        assert_eq!(counts(), [("a".to_owned(), count as u64), ("b".to_owned(), 1)]);
        client.queue("b").unwrap().send(Message::new("x").workflow("w00000").position(1)).await.unwrap();
        look().await;
        assert_eq!(counts(), [("a".to_owned(), count as u64)]);
    }
}
