//! Idempotency keys: a request is done once, and its answer is kept as long as was said.

use std::collections::BTreeMap;

use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Reminder;
use crate::engine::tests::simulation::invariants::work::has_reminder;
use crate::engine::tests::simulation::ledger::fact::Fact;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::View;
use crate::engine::tests::simulation::view::expect;
use crate::error::SendRefusal;

/// I9: within the window the same request is answered as it was, another one under its key is refused, and neither
/// stores anything.
pub(crate) fn a_key_is_answered_once(view: &View<'_>) -> Finding {
    for fact in view.facts {
        let Fact::SentOnce { digest, remembered, answer } = fact else { continue };
        let is_reused = matches!(answer, Err(SendRefusal::KeyReused(_)));
        let is_right = match remembered {
            Some((known, receipts)) if known == digest => answer.as_ref() == Ok(receipts),
            Some(_) => is_reused,
            None => !is_reused,
        };
        expect(is_right, || format!("{fact:?}"))?;
    }
    Ok(())
}

/// I5, I6: every answer that is kept has a reminder to forget it, and is counted.
pub(crate) fn every_answer_is_counted_and_will_be_forgotten(view: &View<'_>) -> Finding {
    let mut found: BTreeMap<QueueId, u64> = BTreeMap::new();
    for ((queue, key), known) in &view.rows().answers {
        *found.entry(*queue).or_default() += 1;
        let reminder = Reminder { due: known.until.into(), queue: *queue, what: Remind::Answer(key.clone()) };
        expect(has_reminder(view, &reminder), || format!("nothing forgets the answer to {key:?}"))?;
    }
    let counted = &view.rows().answer_counts;
    expect(*counted == found, || format!("answers are counted {counted:?}, found {found:?}"))
}
