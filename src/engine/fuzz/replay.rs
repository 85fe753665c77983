//! What the fuzzer has found, and what was made up by hand, on every compiler.

use std::path::Path;

use crate::engine::fuzz::filter;
use crate::engine::fuzz::journal;
use crate::engine::fuzz::record;
use crate::engine::rules::samples;
use crate::engine::store::table::MEMTABLES;

/// Calls `target` with every file of its corpus, which the published package does not have.
fn replay(name: &str, target: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    if !corpus.exists() {
        return;
    }
    let mut files = 0;
    for file in corpus.read_dir().unwrap() {
        target(&std::fs::read(file.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 0, "{} is empty", corpus.display());
}

#[test]
fn hostile_records_are_refused_or_understood_twice() {
    replay("record", record);
}

#[test]
fn hostile_filters_are_refused_with_their_place_or_judged() {
    replay("filter", filter);
}

#[test]
fn hostile_journal_rows_are_refused_or_understood_twice() {
    replay("journal", journal);
}

#[test]
fn every_sample_cut_anywhere_is_refused_or_understood_twice() {
    for (_, bytes) in samples::encoded() {
        for cut in 0..=bytes.len() {
            for kind in 0..=u8::try_from(MEMTABLES).unwrap() + 6 {
                record(&[&[kind], &bytes[..cut]].concat());
            }
            journal(&bytes[..cut]);
        }
    }
}
