//! Looks at places: which are settled ahead of their turn, and what stands before a message of a chain.

use crate::engine::query::QueueLook;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::records::Read;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::engine::view::ChainPlace;
use crate::id::MessageId;
use crate::id::SequenceNumber;
use crate::limits;
use crate::queue::Order;

/// A message with its rank.
type RankedNumber = (u64, SequenceNumber);

impl QueueLook<'_> {
    /// The positions from the cursor on that are settled already, as ranges: a limited number of them.
    pub(crate) fn settled_ahead(&self, key: &WorkflowKey, record: &WorkflowRecord) -> Read<Vec<(u64, u64)>> {
        let by_position = matches!(self.queue.options.order, Order::Position { .. });
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        if !by_position || key.stream.workflow_id().is_none() {
            return Ok(ranges);
        }
        let mut from = record.cursor;
        for _ in 0..limits::SETTLED_AHEAD_LOOKS {
            let Some(mark) = self.records.mark_from(key, from)? else { break };
            let is_full = ranges.len() == limits::SETTLED_AHEAD_MAX;
            match ranges.last_mut() {
                // It was settled in another way than what is before it.
                Some((_, to)) if *to + 1 == mark.from => *to = mark.to,
                _ if is_full => break,
                _ => ranges.push((mark.from, mark.to)),
            }
            from = mark.to + 1;
        }
        Ok(ranges)
    }

    /// What stands before a message that the chain has reached.
    pub(crate) fn chain_place(
        &self,
        sequence: SequenceNumber,
        record: &MessageRecord,
    ) -> Read<Option<ChainPlace>> {
        let key = self.key(record.stream.clone());
        if self.queue.options.order != Order::After || key.stream.workflow_id().is_none() {
            return Ok(None);
        }
        let Some(rank) = self.rank_in_chain(&key, sequence, record)? else { return Ok(None) };
        let in_line = last_before(rank, |from| self.records.line_from(&key, from))?;
        let aside = last_before(rank, |from| self.records.aside_from(&key, from))?;
        let live = in_line.max(aside);
        let nearest = match self.stored_at(&key, rank - 1)? {
            None => {
                let from = |from| (from, SequenceNumber::new(0));
                live.max(last_before(rank, |rank| self.records.dead_letter_of(&key, from(rank)))?)
            }
            stored => stored,
        };
        Ok(Some(ChainPlace { follows: self.id_of(&key, nearest)?, follows_live: self.id_of(&key, live)? }))
    }

    /// The rank of a message that the chain has reached. One that was settled before has none of its own.
    fn rank_in_chain(
        &self,
        key: &WorkflowKey,
        sequence: SequenceNumber,
        record: &MessageRecord,
    ) -> Read<Option<u64>> {
        if record.rank.is_some() {
            return Ok(record.rank);
        }
        let link = self.records.link(key, record.rare.after.as_ref())?;
        Ok(link.filter(|link| link.sequence == Some(sequence)).and_then(|link| link.rank))
    }

    /// The message of a rank, if it is stored.
    fn stored_at(&self, key: &WorkflowKey, rank: u64) -> Read<Option<RankedNumber>> {
        let trail = self.records.trail_from(key, rank)?.filter(|(at, _)| *at == rank);
        let Some((_, trail)) = trail else { return Ok(None) };
        let link = self.records.link(key, trail.after.as_ref())?;
        let Some(sequence) = link.and_then(|link| link.sequence) else { return Ok(None) };
        let stored = self.records.message(MessageKey { queue: key.queue, sequence })?;
        Ok(stored.map(|_| (rank, sequence)))
    }

    fn id_of(&self, key: &WorkflowKey, message: Option<RankedNumber>) -> Read<Option<MessageId>> {
        let Some((_, sequence)) = message else { return Ok(None) };
        let record = self.records.message(MessageKey { queue: key.queue, sequence })?;
        Ok(record.and_then(|record| record.message_id.clone()))
    }
}

/// The last entry of a list before a rank, in a list that is read from its ranks on: mostly it is just before.
fn last_before(
    end: u64,
    first_from: impl Fn(u64) -> Read<Option<RankedNumber>>,
) -> Read<Option<RankedNumber>> {
    let first_from =
        |rank| -> Read<Option<RankedNumber>> { Ok(first_from(rank)?.filter(|(found, _)| *found < end)) };
    let Some(mut last) = first_from(1)? else { return Ok(None) };
    let (mut from, mut to, mut at) = (last.0 + 1, end, end - 1);
    while from < to {
        match first_from(at)? {
            Some(found) => (from, last) = (found.0 + 1, found),
            None => to = at,
        }
        at = from + to.saturating_sub(from) / 2;
    }
    Ok(Some(last))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::id::SequenceNumber;
    use crate::message::Message;
    use crate::queue::Order;
    use crate::queue::QueueOptions;

    #[tokio::test]
    async fn what_is_settled_ahead_of_its_turn_is_shown_as_a_limited_number_of_ranges() {
        let (engine, _clock) = crate::testing::engine().await.unwrap();
        let queue = engine.client().create_queue("q", QueueOptions::by_position()).await.unwrap();
        queue.send(Message::new("x").workflow("w").position(20)).await.unwrap();
        let workflow = queue.workflow("w").unwrap();
        let ahead_after = async |from, to| {
            workflow.declare_void(from, to).await.unwrap();
            workflow.view().await.unwrap().unwrap().settled_ahead
        };
        assert_eq!(ahead_after(2, 3).await, [(2, 3)]);
        assert_eq!(ahead_after(5, 5).await, [(2, 3), (5, 5)]);
        assert_eq!(ahead_after(4, 4).await, [(2, 5)]);
        for position in [7, 9] {
            ahead_after(position, position).await;
        }
        assert_eq!(ahead_after(11, 11).await, [(2, 5), (7, 7), (9, 9)]);
        assert_eq!(ahead_after(1, 1).await, [(7, 7), (9, 9), (11, 11)], "the cursor has passed the first");
    }

    #[tokio::test]
    async fn a_message_of_a_chain_says_what_is_stored_before_it() {
        let (engine, _clock) = crate::testing::engine().await.unwrap();
        let options = QueueOptions { order: Order::After, ..QueueOptions::default() };
        let queue = engine.client().create_queue("q", options).await.unwrap();
        let message = |id: &str| Message::new("x").workflow("w").message_id(id);
        queue.send(message("m1").first()).await.unwrap();
        for number in 2..=7 {
            let (id, predecessor) = (format!("m{number}"), format!("m{}", number - 1));
            queue.send(message(&id).after(predecessor)).await.unwrap();
        }
        queue.send(message("stray").after("nobody")).await.unwrap();
        for number in 1..=5 {
            let mut delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
            match number {
                2 => delivery.defer().await.unwrap(),
                5 => delivery.dead_letter("bad", "").await.unwrap(),
                _ => delivery.complete().await.unwrap(),
            }
        }
        let views = queue.peek(SequenceNumber::new(0), 10).await.unwrap();
        let places = views.iter().map(|view| {
            let named = |id: &Option<crate::id::MessageId>| id.as_ref().map(ToString::to_string);
            let place = view.chain_place.as_ref();
            (named(&view.message_id), place.map(|place| (named(&place.follows), named(&place.follows_live))))
        });
        let id = |id: &str| Some(id.to_owned());
        let expected = [
            (id("m2"), Some((None, None))),
            (id("m5"), Some((id("m2"), id("m2")))),
            (id("m6"), Some((id("m5"), id("m2")))),
            (id("m7"), Some((id("m6"), id("m6")))),
            (id("stray"), None),
        ];
        assert_eq!(places.collect::<Vec<_>>(), expected);
    }
}
