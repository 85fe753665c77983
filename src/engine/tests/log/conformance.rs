//! What every log promises, whatever it is made of.

use std::sync::Arc;
use std::sync::LazyLock;

use crate::clock::Timestamp;
use crate::engine::rules::record::Numbers;
use crate::engine::store::WallRecord;
use crate::engine::store::in_place;
use crate::engine::store::in_place::Epoch;
use crate::engine::store::journal_row::JournalHeader;
use crate::engine::store::journal_row::RowWriter;
use crate::engine::store::log::Entry;
use crate::engine::store::log::Log;
use crate::error::Fault;

/// A log that is made for a test.
pub(crate) trait Subject {
    /// The log, as one more writer of it reaches it; `None` when there can be one writer only.
    fn another(&self) -> Option<Arc<dyn Log>>;
}

/// Tries all promises on logs that are empty.
pub(crate) fn all<S: Subject>(make: impl Fn() -> (Arc<dyn Log>, S)) {
    what_is_appended_is_read_as_it_was(&*make().0);
    an_entry_that_is_there_is_acknowledged_again(&*make().0);
    an_entry_that_does_not_follow_is_refused(&*make().0);
    what_is_trimmed_is_gone_and_the_last_entry_stays(&*make().0);
    large_entries_are_taken(&*make().0);
    let (log, subject) = make();
    if let Some(another) = subject.another() {
        whoever_is_deposed_appends_nothing_any_more(&*log, &*another);
    }
    let (log, subject) = make();
    if let Some(another) = subject.another() {
        of_two_that_take_over_at_once_one_is_refused(&*log, &*another);
    }
}

/// The bytes of an entry.
pub(crate) fn entry(position: u64, epoch: Epoch, len: usize) -> Vec<u8> {
    let header = JournalHeader {
        position,
        previous: position - 1,
        time: Timestamp::from_millis(position),
        numbers: Numbers::default(),
        counters: Vec::new(),
        wall: WallRecord::default(),
    };
    let mut row = RowWriter::new(&header, Vec::with_capacity(len));
    in_place::write(&mut row, epoch, &[]);
    row.begin_table(1);
    row.write(&(), &(), Some(&vec![7_u8; len]));
    row.end_table();
    row.finish().0
}

const EPOCH: Epoch = Epoch { number: 1, holder: 1 };

fn append(log: &dyn Log, position: u64, epoch: Epoch) -> Result<Vec<u8>, Fault> {
    let bytes = entry(position, epoch, 10);
    log.append(Entry { position, bytes: &bytes }).map(|()| bytes)
}

fn read(log: &dyn Log, position: u64) -> Vec<(u64, Vec<u8>)> {
    let mut entries = Vec::new();
    let read = log.read_from(position, &mut |entry| {
        entries.push((entry.position, entry.bytes.to_vec()));
        Ok(())
    });
    read.unwrap();
    entries
}

/// Reads until it is seen how the log ends: whoever reads may be told late of the last entries.
pub(crate) fn read_to(log: &dyn Log, position: u64, last: u64) -> Vec<(u64, Vec<u8>)> {
    loop {
        let entries = read(log, position);
        if entries.last().is_some_and(|(at, _)| *at >= last) {
            return entries;
        }
    }
}

fn what_is_appended_is_read_as_it_was(log: &dyn Log) {
    assert_eq!(read(log, 0), [], "nothing is in it at first");
    let written: Vec<_> = (1..=40).map(|position| append(log, position, EPOCH).unwrap()).collect();
    for from in [0, 1, 2, 17, 40] {
        let skipped = usize::try_from(from).unwrap().saturating_sub(1);
        let expected: Vec<_> = (1..).zip(written.clone()).skip(skipped).collect();
        assert_eq!(read_to(log, from, 40), expected, "from {from}");
    }
    let refused = log.read_from(0, &mut |entry| match entry.position {
        3 => Err(Fault::Defect("stop".to_owned())),
        _ => Ok(()),
    });
    assert!(matches!(refused, Err(Fault::Defect(_))), "whoever reads is asked whether to go on");
}

fn an_entry_that_is_there_is_acknowledged_again(log: &dyn Log) {
    append(log, 1, EPOCH).unwrap();
    append(log, 1, EPOCH).unwrap();
    append(log, 2, EPOCH).unwrap();
    append(log, 2, EPOCH).unwrap();
    assert_eq!(read_to(log, 0, 2).len(), 2, "it is there once");
}

fn an_entry_that_does_not_follow_is_refused(log: &dyn Log) {
    append(log, 1, EPOCH).unwrap();
    assert!(matches!(append(log, 3, EPOCH), Err(Fault::Log(_))), "entry 2 is not there");
    append(log, 2, EPOCH).unwrap();
    let other = Epoch { holder: 2, ..EPOCH };
    assert!(matches!(append(log, 2, other), Err(Fault::Deposed)), "another entry stands there");
    assert!(matches!(append(log, 1, other), Err(Fault::Deposed)), "another entry stands there");
    let entries = read_to(log, 0, 2);
    assert_eq!(entries[1], (2, entry(2, EPOCH, 10)), "what was refused left nothing");
}

fn what_is_trimmed_is_gone_and_the_last_entry_stays(log: &dyn Log) {
    for position in 1..=9 {
        append(log, position, EPOCH).unwrap();
    }
    log.trim(4).unwrap();
    assert_eq!(read_to(log, 0, 9).first().map(|(position, _)| *position), Some(5));
    log.trim(2).unwrap();
    assert_eq!(read_to(log, 7, 9).len(), 3, "what is gone already does not matter");
    log.trim(100).unwrap();
    assert_eq!(read_to(log, 9, 9).len(), 1, "how far it goes can be seen by whoever comes");
    append(log, 10, EPOCH).unwrap();
    assert_eq!(read_to(log, 9, 10).len(), 2);
}

fn large_entries_are_taken(log: &dyn Log) {
    // Unoptimised, its bytes are written one by one: that takes longer than everything else here.
    static LARGE: LazyLock<Vec<u8>> = LazyLock::new(|| entry(1, EPOCH, 3 * 1024 * 1024));
    log.append(Entry { position: 1, bytes: &LARGE }).unwrap();
    assert!(read_to(log, 0, 1)[0].1 == *LARGE, "it comes back whole");
}

fn whoever_is_deposed_appends_nothing_any_more(log: &dyn Log, another: &dyn Log) {
    for position in 1..=3 {
        append(log, position, EPOCH).unwrap();
    }
    append(another, 4, Epoch { number: 2, holder: 2 }).unwrap();
    for _ in 0..3 {
        assert!(matches!(append(log, 4, EPOCH), Err(Fault::Deposed)));
    }
    append(another, 5, Epoch { number: 2, holder: 2 }).unwrap();
    assert!(matches!(append(log, 5, EPOCH), Err(Fault::Deposed)), "whatever it takes for the end");
    another.trim(4).unwrap();
    let refused = append(log, 4, EPOCH);
    assert!(matches!(refused, Err(Fault::Deposed | Fault::Replaced)), "also when its place is gone");
    append(another, 6, Epoch { number: 2, holder: 2 }).unwrap();
    assert_eq!(read_to(another, 5, 6).len(), 2);
}

fn of_two_that_take_over_at_once_one_is_refused(log: &dyn Log, another: &dyn Log) {
    append(log, 1, EPOCH).unwrap();
    append(log, 2, Epoch { number: 2, holder: 2 }).unwrap();
    let refused = append(another, 2, Epoch { number: 2, holder: 3 });
    assert!(matches!(refused, Err(Fault::Deposed)), "both want the same epoch");
}
