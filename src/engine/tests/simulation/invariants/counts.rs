//! Every message is counted where it is, and every delivery of it.

use crate::engine::rules::record::Counts;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::tests::simulation::ledger::fact::Fact;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::View;
use crate::engine::tests::simulation::view::expect;
use crate::queue::ExhaustedPolicy;

/// I7: each hand-out adds one to the delivery count, also over lost locks and lost processes.
pub(crate) fn every_delivery_is_counted(view: &View<'_>) -> Finding {
    for fact in view.facts {
        let Fact::Delivered { delivery_count, expected: (lowest, highest), .. } = fact else { continue };
        expect((lowest..=highest).contains(&delivery_count), || format!("{fact:?}"))?;
    }
    Ok(())
}

/// I7: a message that was handed out as often as it may is not handed out again, unless somebody says so.
pub(crate) fn an_exhausted_message_is_not_handed_out(view: &View<'_>) -> Finding {
    for fact in view.facts {
        let Fact::Delivered { queue, delivery_count, is_excused: false, is_fetched: false, .. } = fact else {
            continue;
        };
        let Some(known) = view.ledger.queues.get(queue) else { continue };
        let is_left = *delivery_count <= known.count_max_ever || known.has_few_dead;
        expect(is_left || known.options.exhausted_policy() == ExhaustedPolicy::Hold, || format!("{fact:?}"))?;
    }
    Ok(())
}

/// I7: what is written of a message is what was answered of it.
pub(crate) fn delivery_counts_equal_the_answers(view: &View<'_>) -> Finding {
    for (sequence, entry) in view.ledger.entries.iter().filter(|(_, entry)| entry.end.is_none()) {
        let Some(message) = view.message(&entry.queue, *sequence) else { continue };
        let (lowest, highest) = entry.count;
        let count = message.delivery_count;
        let is_right = (lowest..=highest).contains(&count);
        expect(is_right, || format!("message {sequence} has {count}, not {lowest}..={highest}"))?;
    }
    Ok(())
}

/// I6: every counter is what a count of the rows gives, and all together are what was accepted.
pub(crate) fn counters_equal_the_rows(view: &View<'_>) -> Finding {
    for queue in view.rows().queues.values() {
        let counts = view.rows().counters.get(&queue.id).copied().unwrap_or_default().counts;
        expect(counts.conserved(), || format!("{counts:?}"))?;
        let mut found = Counts::default();
        for (_, message) in view.messages_of(queue.id) {
            *bucket(&mut found, view, queue.id, message) += 1;
        }
        let is_same = |one: &Counts, other: &Counts| {
            [
                one.ready,
                one.early,
                one.locked,
                one.retry,
                one.exhausted,
                one.by_consumer,
                one.scheduled,
                one.dead_lettered,
            ] == [
                other.ready,
                other.early,
                other.locked,
                other.retry,
                other.exhausted,
                other.by_consumer,
                other.scheduled,
                other.dead_lettered,
            ]
        };
        expect(is_same(&counts, &found), || format!("{}: counted {counts:?}, found {found:?}", queue.name))?;
    }
    Ok(())
}

fn bucket<'a>(
    found: &'a mut Counts,
    view: &View<'_>,
    queue: QueueId,
    message: &MessageRecord,
) -> &'a mut u64 {
    match message.status {
        Status::Ready if is_early(view, queue, message) => &mut found.early,
        Status::Ready => &mut found.ready,
        Status::Scheduled { .. } => &mut found.scheduled,
        Status::Failed { due: Some(_) } => &mut found.retry,
        Status::Failed { due: None } => &mut found.exhausted,
        Status::ByConsumer { .. } => &mut found.by_consumer,
        Status::Locked { .. } => &mut found.locked,
        Status::DeadLettered(_) => &mut found.dead_lettered,
    }
}

pub(crate) fn is_early(view: &View<'_>, queue: QueueId, message: &MessageRecord) -> bool {
    let WorkflowRef::Named(_) = message.stream else { return false };
    let key = WorkflowKey { queue, stream: message.stream.clone() };
    let through = view.rows().workflows.get(&key).map_or(0, |workflow| workflow.through);
    let options = view.rows().queues.get(&queue).map(|queue| queue.options.order);
    let has_places =
        matches!(options, Some(crate::queue::Order::Position { .. } | crate::queue::Order::After));
    has_places && message.rank.is_none_or(|rank| rank > through)
}

/// I6: what the engine counts of what was sent and of how it ended is what it answered.
pub(crate) fn counters_equal_the_answers(view: &View<'_>) -> Finding {
    for queue in view.rows().queues.values() {
        let counts = view.rows().counters.get(&queue.id).copied().unwrap_or_default().counts;
        let Some(known) = view.ledger.queues.get(&queue.name) else {
            return Err(format!("queue {} is there, and nobody made it", queue.name));
        };
        let sums = known.sums;
        let counted = [counts.accepted, counts.completed, counts.cancelled, counts.purged];
        let answered = [sums.accepted, sums.completed, sums.cancelled, sums.purged];
        expect(counted == answered, || {
            format!("{}: counted {counted:?}, answered {answered:?}", queue.name)
        })?;
    }
    Ok(())
}
