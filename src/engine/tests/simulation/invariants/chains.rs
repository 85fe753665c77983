//! Chains: what names what, in after-ordered workflows.

use crate::engine::rules::record::MessageKey;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::View;
use crate::engine::tests::simulation::view::expect;
use crate::id::SequenceNumber;
use crate::limits;

/// I5: every trail leads to its link, so that the link is forgotten when its time has come.
pub(crate) fn every_trail_leads_to_its_link(view: &View<'_>) -> Finding {
    for ((key, rank), trail) in &view.rows().trails {
        let link = view.rows().links.get(&(key.clone(), trail.after.clone()));
        // Beyond all ranks a trail is kept under the number of a message that the chain has not reached.
        let is_right = link.is_some_and(|link| match rank.checked_sub(limits::NUMBER_END) {
            None => link.rank == Some(*rank),
            Some(number) => link.sequence == Some(SequenceNumber::new(number)),
        });
        expect(is_right, || format!("{key:?} at {rank}: {trail:?} leads to {link:?}"))?;
    }
    Ok(())
}

/// I5: every link that has a place has a trail to it, and every message that waits for its predecessor is linked.
pub(crate) fn every_link_has_its_trail(view: &View<'_>) -> Finding {
    for ((key, after), link) in &view.rows().links {
        let trail = link.rank.and_then(|rank| view.rows().trails.get(&(key.clone(), rank)));
        let has_trail = link.rank.is_none() || trail.is_some_and(|trail| trail.after == *after);
        expect(has_trail, || format!("{key:?} after {after:?}: {link:?} has no trail"))?;
    }
    for ((key, id), sequence) in &view.rows().waiting {
        let message = view.rows().messages.get(&MessageKey { queue: key.queue, sequence: *sequence });
        let link =
            message.and_then(|message| view.rows().links.get(&(key.clone(), message.rare.after.clone())));
        let is_linked = link.is_some_and(|link| link.sequence == Some(*sequence) && link.rank.is_none());
        expect(is_linked, || format!("{key:?} waits for {id:?}: {message:?} is linked by {link:?}"))?;
    }
    Ok(())
}
