//! A workflow has one holder, and only he settles.

use std::collections::BTreeMap;

use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::tests::simulation::ledger::fact::Fact;
use crate::engine::tests::simulation::ledger::fact::Standing;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::View;
use crate::engine::tests::simulation::view::expect;

/// I3: whoever is handed a message is the only holder of its workflow.
pub(crate) fn a_workflow_has_one_holder(view: &View<'_>) -> Finding {
    for fact in view.facts {
        if let Fact::Delivered { holders, .. } = fact {
            expect(holders.is_empty(), || format!("there is another holder: {fact:?}"))?;
        }
    }
    Ok(())
}

/// I3: a message that is suspected of a failure it shared is out alone.
pub(crate) fn a_suspect_is_out_alone(view: &View<'_>) -> Finding {
    let in_turn = |message: &MessageRecord| message.status == Status::Locked { fetched: None };
    let out = view.rows().messages.iter().filter(|(_, message)| in_turn(message));
    let mut out_of: BTreeMap<(QueueId, &WorkflowRef), Vec<&MessageRecord>> = BTreeMap::new();
    for (key, message) in out {
        out_of.entry((key.queue, &message.stream)).or_default().push(message);
    }
    for (key, out) in out_of {
        let is_alone = out.len() == 1 || !out.iter().any(|message| message.is_suspect());
        expect(is_alone, || format!("{key:?}: {out:?}"))?;
    }
    Ok(())
}

/// I3, both sides: what is held and not run out is settled, and nothing else is.
pub(crate) fn a_settle_is_accepted_from_the_holder_and_nobody_else(view: &View<'_>) -> Finding {
    for fact in view.facts {
        let Fact::Settled { standing, is_done, is_lost, .. } = fact else { continue };
        let is_right = match standing {
            Standing::Void => !is_done,
            Standing::Current => !is_lost,
            Standing::Unsure => true,
        };
        expect(is_right, || format!("{fact:?}"))?;
    }
    Ok(())
}

/// I3: a new lock, and one that is renewed, lasts for the queue's lock time from that instant.
pub(crate) fn a_lock_lasts_as_long_as_its_queue_says(view: &View<'_>) -> Finding {
    for fact in view.facts {
        let (Fact::Delivered { locked_until, expected_until, .. }
        | Fact::Renewed { locked_until, expected_until }) = fact
        else {
            continue;
        };
        let is_right = Some(*locked_until) == *expected_until;
        expect(is_right, || format!("at {:?} until {locked_until}: {fact:?}", view.now))?;
    }
    Ok(())
}
