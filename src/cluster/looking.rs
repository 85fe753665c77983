//! Looks at a whole cluster: what each partition shows is put together in the order in which one engine would show it.

use std::time::Duration;

use crate::cluster::paging::joined;
use crate::cluster::paging::look_behind;
use crate::cluster::paging::put_behind;
use crate::cluster::partition::first_number;
use crate::cluster::request_places::PlaceNeed;
use crate::cluster::request_places::RequestWay;
use crate::cluster::router::Router;
use crate::cluster::wire::Ask;
use crate::cluster::wire::NodeReply;
use crate::cluster::wire::What;
use crate::engine::DeadLetterView;
use crate::engine::QueueView;
use crate::engine::elsewhere::LookFor;
use crate::engine::elsewhere::LookResult;
use crate::engine::elsewhere::LookScope;
use crate::engine::elsewhere::add_counts;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::id::SequenceNumber;

impl Router {
    /// Looks for something wherever it is.
    pub(crate) async fn look(
        &self,
        look: LookFor,
        scope: LookScope,
        way: &RequestWay,
    ) -> Result<LookResult, Unavailable> {
        if scope == LookScope::Anywhere {
            return self.look_in(self.any_of(way), look).await;
        }
        if let Some(partition) = self.place_of_look(&look) {
            return self.look_in(partition, look).await;
        }
        match &look {
            LookFor::History { id: None, .. } => Err(Unavailable::Unsupported(
                "each partition has a history of its own: ask for that of a workflow",
            )),
            LookFor::Messages { from, .. } | LookFor::Alone { from, .. } => {
                self.look_by_number(look.clone(), *from).await
            }
            // Every partition has the same.
            LookFor::Topic { .. } => self.look_in(self.any_of(way), look).await,
            LookFor::Topics { after, limit } => {
                self.look_at_topics(self.any_of(way), after.clone(), *limit).await
            }
            _ => self.look_everywhere(look).await,
        }
    }

    /// Of what a look needs places.
    pub(crate) fn need_of_look(&self, look: &LookFor, scope: LookScope, way: &RequestWay) -> PlaceNeed {
        let is_everywhere =
            scope == LookScope::Anywhere || matches!(look, LookFor::Topic { .. } | LookFor::Topics { .. });
        match self.place_of_look(look) {
            Some(partition) => PlaceNeed::One(partition),
            None if is_everywhere => PlaceNeed::One(self.any_of(way)),
            None => PlaceNeed::All,
        }
    }

    /// The one partition that shows it, if there is one.
    fn place_of_look(&self, look: &LookFor) -> Option<u16> {
        match look {
            LookFor::Workflow { queue, id }
            | LookFor::Line { queue, id, .. }
            | LookFor::State { queue, id }
            | LookFor::History { queue, id: Some(id), .. } => Some(self.places.workflow(queue, id)),
            LookFor::Ended { sequence, .. } => Some(self.places.number(*sequence)),
            _ => None,
        }
    }

    /// Looks for something in one partition: for all of a page, however much of it comes at once.
    pub(crate) async fn look_in(&self, partition: u16, look: LookFor) -> Result<LookResult, Unavailable> {
        let (mut look, mut all) = (look, None);
        loop {
            let ask = Ask::of_partition(partition, What::Look(look.clone()));
            let (found, may_be_more) = match self.said(partition, &ask, Duration::ZERO).await? {
                // An engine gives less than was asked for when what it has to read for it is large.
                NodeReply::Found(found) => (*found, matches!(look, LookFor::DeadLetters { .. })),
                NodeReply::FoundBeginning(found) => (*found, true),
                _ => return Err(Unavailable::nonsense()),
            };
            let next = look_behind(&look, &found).filter(|_| may_be_more);
            let found = match all.take() {
                None => found,
                Some(beginning) => put_behind(beginning, found).ok_or_else(Unavailable::nonsense)?,
            };
            match next {
                Some(next) => (look, all) = (next, Some(found)),
                None => return Ok(found),
            }
        }
    }

    /// Looks in one partition after the other, in which the numbers follow each other, for the first that shows something. A page
    /// may be shorter than it could be; the next begins behind its last.
    async fn look_by_number(&self, look: LookFor, from: SequenceNumber) -> Result<LookResult, Unavailable> {
        let first = self.places.number(from);
        let mut last = None;
        for partition in first..self.places.partitions {
            let from = from.max(SequenceNumber::new(first_number(partition) - 1));
            let look = match look.clone() {
                LookFor::Messages { queue, limit, .. } => LookFor::Messages { queue, from, limit },
                LookFor::Alone { queue, limit, .. } => LookFor::Alone { queue, from, limit },
                look => look,
            };
            let found = self.look_in(partition, look).await?;
            let is_empty = match &found {
                LookResult::Messages(messages) => messages.as_ref().is_some_and(Vec::is_empty),
                LookResult::Alone(alone) => alone.as_ref().is_some_and(Vec::is_empty),
                _ => return Err(Unavailable::nonsense()),
            };
            if !is_empty {
                return Ok(found);
            }
            last = Some(found);
        }
        last.ok_or_else(Unavailable::nonsense)
    }

    /// As many topics as were asked for, however many come at once.
    async fn look_at_topics(
        &self,
        partition: u16,
        mut after: Option<QueueName>,
        limit: usize,
    ) -> Result<LookResult, Unavailable> {
        let mut topics = Vec::new();
        while topics.len() < limit {
            let look = LookFor::Topics { after: after.clone(), limit: limit - topics.len() };
            let LookResult::Topics(page) = self.look_in(partition, look).await? else {
                return Err(Unavailable::nonsense());
            };
            let Some(last) = page.last() else { break };
            after = Some(last.name.clone());
            topics.extend(page);
        }
        Ok(LookResult::Topics(topics))
    }

    async fn look_everywhere(&self, look: LookFor) -> Result<LookResult, Unavailable> {
        let looks = (0..self.places.partitions).map(|partition| self.look_in(partition, look.clone()));
        let (mut all, mut missing): (Option<LookResult>, Vec<(u16, Unavailable)>) = (None, Vec::new());
        for found in futures_util::future::join_all(looks).await {
            match (all.take(), found) {
                (known, Err(why @ Unavailable::PartitionStopped { partition, .. }))
                    if says_missing(&look) =>
                {
                    all = known;
                    missing.push((partition, why));
                }
                (_, Err(why)) => return Err(why),
                (None, Ok(found)) => all = Some(found),
                (Some(known), Ok(found)) => {
                    all = Some(together(known, found).ok_or_else(Unavailable::nonsense)?)
                }
            }
        }
        match all {
            Some(all) => Ok(without(in_order(all, &look), missing.into_iter().map(|(number, _)| number))),
            None => Err(missing.pop().map_or_else(Unavailable::nonsense, |(_, why)| why)),
        }
    }
}

/// Whether what is shown says which partitions it is without. Of all else, to leave out a part would be a wrong answer.
fn says_missing(look: &LookFor) -> bool {
    matches!(look, LookFor::Queues { .. } | LookFor::Queue { .. })
}

/// Says of queues which partitions are not counted.
fn without(mut found: LookResult, missing: impl Iterator<Item = u16>) -> LookResult {
    let missing: Vec<u16> = missing.collect();
    match &mut found {
        LookResult::Queues(views) => {
            views.iter_mut().for_each(|view| view.missing_partitions.clone_from(&missing));
        }
        LookResult::Queue(Some(view)) => view.missing_partitions = missing,
        _ => {}
    }
    found
}

/// What two partitions show.
fn together(all: LookResult, more: LookResult) -> Option<LookResult> {
    Some(match (all, more) {
        (LookResult::Queues(mut all), LookResult::Queues(more)) => {
            for view in more {
                match all.iter_mut().find(|known| known.name == view.name) {
                    Some(known) => add_queue(known, &view),
                    None => all.push(view),
                }
            }
            LookResult::Queues(all)
        }
        (LookResult::Queue(Some(mut all)), LookResult::Queue(Some(more))) => {
            add_queue(&mut all, &more);
            LookResult::Queue(Some(all))
        }
        (LookResult::Queue(_), LookResult::Queue(_)) => LookResult::Queue(None),
        (LookResult::Workflows(all), LookResult::Workflows(more)) => LookResult::Workflows(joined(all, more)),
        (LookResult::Offered(all), LookResult::Offered(more)) => LookResult::Offered(joined(all, more)),
        (LookResult::DeadLetters(all), LookResult::DeadLetters(more)) => {
            LookResult::DeadLetters(joined(all, more))
        }
        (LookResult::Standing(all), LookResult::Standing(more)) => {
            let both = all.zip(more);
            LookResult::Standing(both.map(|(all, more)| joined(all, more)))
        }
        (LookResult::NextDue(all), LookResult::NextDue(more)) => {
            LookResult::NextDue(all.into_iter().chain(more).min())
        }
        _ => return None,
    })
}

/// In the order of one engine, as many as were asked for.
fn in_order(mut found: LookResult, look: &LookFor) -> LookResult {
    match (&mut found, look) {
        (LookResult::Queues(all), LookFor::Queues { limit, .. }) => {
            all.sort_by(|one, other| one.name.cmp(&other.name));
            all.truncate(*limit);
        }
        (LookResult::Workflows(Some(all)), LookFor::Workflows { limit, .. })
        | (LookResult::Standing(Some(Some(all))), LookFor::Standing { limit, .. }) => {
            all.sort_by(|one, other| one.workflow_id.cmp(&other.workflow_id));
            all.truncate(*limit);
        }
        (LookResult::DeadLetters(Some(all)), LookFor::DeadLetters { limit, .. }) => {
            all.sort_by(|one, other| {
                let of = |view: &DeadLetterView| (view.dead_letter.reason.clone(), view.sequence_number);
                of(one).cmp(&of(other))
            });
            all.truncate(*limit);
        }
        (LookResult::Offered(Some(all)), LookFor::Offered { limit, .. }) => all.truncate(*limit),
        _ => {}
    }
    found
}

/// Adds what a queue has in another partition.
pub(crate) fn add_queue(all: &mut QueueView, more: &QueueView) {
    add_counts(&mut all.counts, &more.counts);
    all.history += more.history;
    all.cursors += more.cursors;
    all.cursors_cut += more.cursors_cut;
    all.links_cut += more.links_cut;
    all.created_at = all.created_at.min(more.created_at);
    all.rate_limited_until = all.rate_limited_until.max(more.rate_limited_until);
}
