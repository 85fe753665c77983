//! The journal: each row's checksum and chain, and every row in it.

use std::collections::BTreeMap;

use redb::ReadTransaction;

use crate::clock::Timestamp;
use crate::engine::rules::record::Numbers;
use crate::engine::rules::record::QueueCounters;
use crate::engine::rules::record::QueueId;
use crate::engine::store::WallRecord;
use crate::engine::store::caught::guarded;
use crate::engine::store::checksum::PAGES_MAKE_NO_SENSE;
use crate::engine::store::journal;
use crate::engine::store::journal_row::JournalHeader;
use crate::engine::store::journal_row::RowReader;
use crate::engine::store::merged_tables::Overlay;
use crate::engine::store::table::MEMTABLES;
use crate::engine::verify::bytes::problem;
use crate::engine::verify::findings::Findings;
use crate::error::Fault;

const JOURNAL: &str = "journal";

/// What the journal says.
pub(crate) struct VerifiedJournal {
    pub(crate) overlay: Overlay,
    pub(crate) last: Option<Last>,
    pub(crate) counters: BTreeMap<QueueId, QueueCounters>,
}

/// What the last row says.
#[derive(Clone, Copy)]
pub(crate) struct Last {
    pub(crate) position: u64,
    pub(crate) time: Timestamp,
    pub(crate) wall: WallRecord,
    pub(crate) numbers: Numbers,
}

impl VerifiedJournal {
    /// Reads the journal, noting what is damaged.
    pub(crate) fn read(transaction: &ReadTransaction, findings: &mut Findings<'_>) -> VerifiedJournal {
        let mut window = VerifiedJournal {
            overlay: [const { BTreeMap::new() }; MEMTABLES],
            last: None,
            counters: BTreeMap::new(),
        };
        let mut before: Option<(u64, u64)> = None;
        let read = guarded(|| {
            journal::read_all(transaction, |position, row| {
                before = window.read_row(position, row, before, findings);
                findings.report.commits += 1;
                findings.go_on();
                Ok(())
            })
        });
        match read {
            Ok(Ok(())) => {}
            Ok(Err(fault)) => findings.fault(JOURNAL, &fault),
            Err(_) => findings.add(JOURNAL, String::new(), PAGES_MAKE_NO_SENSE),
        }
        window
    }

    /// Reads one row; returns its position and checksum, to which the next is chained, unless it is damaged.
    fn read_row(
        &mut self,
        position: u64,
        checksummed: &[u8],
        before: Option<(u64, u64)>,
        findings: &mut Findings<'_>,
    ) -> Option<(u64, u64)> {
        let mut damaged = |problem: String| findings.add(JOURNAL, format!("commit {position}"), problem);
        let (header, checksum, row) = match RowReader::open(checksummed) {
            Ok(opened) => opened,
            Err(fault) => {
                damaged(problem(&fault));
                return None;
            }
        };
        if header.position != position {
            damaged(format!("it says that it is commit {}", header.position));
        }
        if before.is_some_and(|(before, checksum)| before + 1 != position || checksum != header.previous) {
            damaged("it does not follow the commit before".to_owned());
        }
        if let Err(fault) = self.take(row) {
            damaged(problem(&fault));
        }
        let JournalHeader { time, numbers, counters, wall, .. } = header;
        self.last = Some(Last { position, time, wall, numbers });
        self.counters.extend(counters);
        Some((position, checksum))
    }

    /// Lays the rows of a commit over those before.
    fn take(&mut self, mut row: RowReader<'_>) -> Result<(), Fault> {
        while let Some(number) = row.next_table()? {
            let Some(table) = self.overlay.get_mut(usize::from(number)) else {
                return Err(Fault::Damaged { table: JOURNAL, detail: "a row names no table".to_owned() });
            };
            while let Some((key, value)) = row.next_row()? {
                table.insert(key.to_vec(), value.map(<[u8]>::to_vec));
            }
        }
        Ok(())
    }
}
