//! The whole of it: pages, journal, rows, and what the rows say of each other.

use std::path::Path;

use crate::engine::store::caught::guarded;
use crate::engine::store::inspect::Inspection;
use crate::engine::store::merged_tables::MergedTables;
use crate::engine::store::schema::visit_each;
use crate::engine::verify::bytes;
use crate::engine::verify::bytes::VerifyRows;
use crate::engine::verify::compare::RowComparison;
use crate::engine::verify::findings::Findings;
use crate::engine::verify::journal::VerifiedJournal;
use crate::engine::verify::ledger::GoneQueues;
use crate::engine::verify::ledger::Ledger;
use crate::engine::verify::report::Verification;
use crate::engine::verify::report::VerifyProgress;
use crate::engine::verify::report::VerifyStep;
use crate::error::Fault;
use crate::error::OpenError;

/// Verifies the file of an engine that no engine has open, without changing it: the checksum of every page, the
/// checksum and meaning of every row, the chain of the journal, and then what the rows say of each other: that each
/// message has its content and its place, that counters equal what is there, that what is ready is listed and what is
/// due has its reminder. `progress` is told how far it has come.
///
/// It reads the whole file and blocks until it is done; in async code, give it a thread that may block.
///
/// What it cannot see: a file whose process died and whose last commit was hit by bit rot looks like one whose last
/// commit was never finished. [`Durability::Strict`](crate::store::Durability::Strict) tells these apart.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), seriatim::Error> {
/// # let folder = tempfile::tempdir().expect("a temporary folder");
/// # let path = folder.path().join("orders.redb");
/// use seriatim::{Engine, Message, QueueOptions};
///
/// let engine = Engine::open(&path).await?;
/// let orders = engine.client().create_queue("orders", QueueOptions::by_position()).await?;
/// orders.send(Message::new("paid").workflow("order-17").position(1)).await?;
/// engine.close().await;
///
/// let found = seriatim::store::verify(&path, |_| {})?;
/// assert!(found.is_sound(), "{:?}", found.damages);
/// assert_eq!(found.messages, 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`OpenError`] when the file cannot be looked at: it is not an engine's file or a newer one, damaged beyond
/// recognition, held by an engine (it is named), or the disk fails.
pub fn verify(
    path: impl AsRef<Path>,
    mut progress: impl FnMut(VerifyProgress),
) -> Result<Verification, OpenError> {
    let mut findings = Findings::new(&mut progress);
    match verify_file(path.as_ref(), &mut findings) {
        Err(OpenError::Fault(fault @ Fault::Damaged { table, .. })) => findings.fault(table, &fault),
        done => done?,
    }
    Ok(findings.report)
}

fn verify_file(path: &Path, findings: &mut Findings<'_>) -> Result<(), OpenError> {
    findings.begin(VerifyStep::Pages, None);
    // On an opening of its own: where redb finds damage it shows an older state from then on.
    if let Some(problem) = Inspection::open(path)?.check_pages()? {
        findings.add("pages", String::new(), problem);
    }
    let below_rows = findings.report.damages_total;
    let inspection = Inspection::open(path)?;
    if below_rows == 0
        && let Err(fault) = inspection.check_whole()
    {
        match fault {
            Fault::Damaged { table, .. } => findings.fault(table, &fault),
            fault => return Err(fault.into()),
        }
    }
    let inspection = inspection.upgraded()?;
    let transaction = inspection.transaction()?;
    findings.begin(VerifyStep::Journal, None);
    if let Some(fault) = inspection.margin_damage() {
        findings.fault("journal", fault);
    }
    let window = VerifiedJournal::read(&transaction, findings);
    findings.begin(VerifyStep::Rows, bytes::count_rows(&transaction));
    let ledger = Ledger::read(&transaction, &window, findings);
    let mut overlay = window.overlay;
    visit_each(&mut VerifyRows { transaction: &transaction, overlay: &overlay, findings })?;
    if findings.report.damages_total > below_rows {
        return Ok(());
    }
    findings.begin(VerifyStep::Compare, None);
    visit_each(&mut GoneQueues { ledger: &ledger, overlay: &mut overlay })?;
    let rows = MergedTables::new(&transaction, &overlay)?;
    match guarded(|| RowComparison::new(&rows, &ledger, findings).compare()) {
        Ok(compared) => compared?,
        Err(panic) => return Err(panic.into_defect().into()),
    }
    findings.report.compared = true;
    Ok(())
}
