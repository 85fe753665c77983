//! The audit: what was asked on record is there, each once, in order, with what came of it.

use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::View;
use crate::engine::tests::simulation::view::expect;

/// I12: what was asked on record was written down in the same transaction, whether it was done or refused.
pub(crate) fn what_operators_do_is_written_down(view: &View<'_>) -> Finding {
    let entries = view.rows().audit.values();
    let written = entries.map(|entry| (entry.actor.clone(), entry.queue.clone(), entry.refusal.is_some()));
    let written: Vec<_> = written.collect();
    let asked = &view.ledger.on_record;
    expect(written == *asked, || format!("{asked:?} were asked for, {written:?} are written down"))?;
    let numbers = view.rows().audit.iter().map(|(number, entry)| (*number, entry.number));
    let is_numbered = numbers.zip(1..).all(|((key, own), expected)| key == expected && own == expected);
    expect(is_numbered, || format!("the audit is not numbered: {:?}", view.rows().audit.keys()))
}
