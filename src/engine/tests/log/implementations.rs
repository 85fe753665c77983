//! The logs that are made without servers keep the promises of all logs.

use std::sync::Arc;

use redb::Database;
use redb::backends::InMemoryBackend;

use crate::engine::store::StoreOptions;
use crate::engine::store::create::write_format;
use crate::engine::store::in_place::Epoch;
use crate::engine::store::local_log::LocalLog;
use crate::engine::store::log::Entry;
use crate::engine::store::log::Log;
use crate::engine::store::shared_log::SharedLog;
use crate::engine::tests::log::conformance;
use crate::engine::tests::log::conformance::Subject;
use crate::engine::tests::log::conformance::entry;
use crate::engine::tests::log::server::Servers;
use crate::error::Fault;

/// A log of one file has one writer.
struct OneWriter;

impl Subject for OneWriter {
    fn another(&self) -> Option<Arc<dyn Log>> {
        None
    }
}

impl Subject for Servers {
    fn another(&self) -> Option<Arc<dyn Log>> {
        Some(Arc::new(SharedLog::new(self.clone())))
    }
}

fn on(servers: Servers) -> (Arc<dyn Log>, Servers) {
    (Arc::new(SharedLog::new(servers.clone())), servers)
}

#[test]
fn the_journal_of_a_file_is_a_log() {
    conformance::all(|| {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let transaction = database.begin_write().unwrap();
        write_format(&transaction).unwrap();
        transaction.commit().unwrap();
        (
            Arc::new(LocalLog::new(Arc::new(database), StoreOptions::default(), None)) as Arc<dyn Log>,
            OneWriter,
        )
    });
}

#[test]
fn a_log_on_servers_is_a_log() {
    conformance::all(|| on(Servers::sound()));
}

#[test]
fn whether_an_entry_was_taken_whose_place_was_given_up_is_not_known() {
    let servers = Servers::sound();
    let log = SharedLog::new(servers);
    let epoch = Epoch { number: 1, holder: 1 };
    let append = |position| log.append(Entry { position, bytes: &entry(position, epoch, 10) });
    (1..=3).for_each(|position| append(position).unwrap());
    log.trim(2).unwrap();
    assert!(matches!(append(2), Err(Fault::Replaced)), "it was taken, and nobody can see it");
}

#[test]
fn a_damaged_copy_of_an_entry_says_of_nobody_that_another_has_taken_over() {
    let (log, servers) = on(Servers::sound());
    let bytes = entry(1, Epoch { number: 1, holder: 1 }, 100);
    log.append(Entry { position: 1, bytes: &bytes }).unwrap();
    // Its acknowledgement was lost, and the server that is asked what stands there has a damaged copy.
    servers.flip(1, 100);
    let again = log.append(Entry { position: 1, bytes: &bytes });
    assert!(matches!(again, Err(Fault::Log(_))), "{again:?}");
    servers.flip(1, 100);
    log.append(Entry { position: 1, bytes: &bytes }).unwrap();
}

#[test]
fn a_log_on_servers_that_misbehave_is_a_log() {
    let only = std::env::var("SERIATIM_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in only.map_or(0..200, |seed: u64| seed..seed + 1) {
        let tried = std::panic::catch_unwind(|| conformance::all(|| on(Servers::misbehaving(seed))));
        assert!(tried.is_ok(), "SERIATIM_SEED={seed}");
    }
}

#[test]
fn servers_that_do_not_look_at_the_position_are_no_log() {
    let tried = std::panic::catch_unwind(|| {
        conformance::all(|| {
            let servers = Servers::sound();
            servers.take_anything();
            on(servers)
        });
    });
    assert!(tried.is_err(), "the suite would not notice");
}
