//! What was accepted is there until it has ended, once.

use std::collections::BTreeSet;

use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::tests::simulation::ledger::entry::End;
use crate::engine::tests::simulation::ledger::fact::Fact;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::View;
use crate::engine::tests::simulation::view::expect;
use crate::id::SequenceNumber;

/// I1: every accepted message is stored, or has ended in a way that somebody asked for or its time to live allows.
pub(crate) fn nothing_acknowledged_is_lost(view: &View<'_>) -> Finding {
    for (sequence, end) in gone(view) {
        expect(end.is_some(), || {
            format!("message {sequence} is gone: {:?}", view.ledger.entries[&sequence])
        })?;
    }
    Ok(())
}

/// Messages that are not stored any more although nobody said so, and how they may have ended.
pub(crate) fn gone(view: &View<'_>) -> Vec<(SequenceNumber, Option<End>)> {
    let mut gone = Vec::new();
    for (sequence, entry) in view.ledger.entries.iter().filter(|(_, entry)| entry.end.is_none()) {
        if view.message(&entry.queue, *sequence).is_none() {
            let is_expired = entry.expires_at.is_some_and(|(at, by_wall)| {
                at <= view.now.engine || by_wall.is_some_and(|at| at <= view.ledger.wall_max)
            });
            let known = view.ledger.queues.get(&entry.queue);
            let is_expired = is_expired && known.is_some_and(|known| known.has_dropped);
            let end = match (is_expired, view.ledger.has_purged) {
                (true, _) => Some(End::Expired),
                (false, true) => Some(End::Purged),
                (false, false) => None,
            };
            gone.push((*sequence, end));
        }
    }
    gone
}

/// I5: every dead letter of a workflow is listed once, under the place it had, and nothing else is.
pub(crate) fn every_dead_letter_is_listed(view: &View<'_>) -> Finding {
    let dead =
        view.rows().messages.iter().filter(|(_, message)| matches!(message.status, Status::DeadLettered(_)));
    let dead = dead.map(|(key, message)| {
        let workflow = WorkflowKey { queue: key.queue, stream: message.stream.clone() };
        (workflow, message.rank.unwrap_or(0), key.sequence)
    });
    let dead: BTreeSet<_> = dead.collect();
    let listed = &view.rows().dead_by_workflow;
    expect(dead == *listed, || format!("dead letters are {dead:?}, listed are {listed:?}"))
}

/// I2: a message is completed once, and is not handed out after its end.
pub(crate) fn a_message_ends_once(view: &View<'_>) -> Finding {
    for fact in view.facts {
        let (sequence, ended) = match fact {
            Fact::Completed { sequence, ended } => (sequence, ended),
            Fact::Delivered { sequence, ended, is_known, .. } => {
                expect(*is_known, || format!("message {sequence} was never sent"))?;
                (sequence, ended)
            }
            _ => continue,
        };
        expect(ended.is_none(), || format!("message {sequence} had ended: {fact:?}"))?;
    }
    Ok(())
}

/// I9: an ID is accepted once within the window, answered with the first number, and accepted anew from its end on.
pub(crate) fn a_duplicate_is_accepted_once(view: &View<'_>) -> Finding {
    for fact in view.facts {
        let Fact::Sent { receipt, remembered, is_pending, .. } = fact else { continue };
        let is_right = match (receipt, remembered) {
            (Receipt::Duplicate(first), Some(known)) => first == known,
            (Receipt::Duplicate(_), None) => *is_pending,
            (_, remembered) => remembered.is_none(),
        };
        expect(is_right, || format!("{fact:?}"))?;
    }
    Ok(())
}

/// I9: every accepted message has a number that is higher than all before it.
pub(crate) fn numbers_are_never_given_twice(view: &View<'_>) -> Finding {
    for fact in view.facts {
        if let Fact::Sent { receipt: Receipt::Accepted(new) | Receipt::DeadLettered(new), last, .. } = fact {
            expect(new.get() > *last, || format!("{new} after {last}"))?;
        }
    }
    Ok(())
}

/// I10: a cancel succeeds as long as the message is scheduled, and never afterwards.
pub(crate) fn what_is_cancelled_was_scheduled(view: &View<'_>) -> Finding {
    for fact in view.facts {
        let Fact::Cancelled { queue, sequence, is_done, is_known, is_scheduled, was_delivered } = fact else {
            continue;
        };
        expect(!is_done || (*is_scheduled && !was_delivered), || format!("{sequence}: {fact:?}"))?;
        let status = view.message(queue, *sequence).map(|message| &message.status);
        let is_left = matches!(status, Some(Status::Scheduled { due }) if !due.is_past(view.now));
        expect(!is_left || !is_known, || {
            format!("message {sequence} is scheduled, and could not be cancelled: {fact:?}")
        })?;
    }
    Ok(())
}
