//! Disks that are full, and disks that become read-only under load: the engine stops with a clear word, and nothing
//! acknowledged is lost.

use crate::kill::disk::Disk;
use crate::kill::output_lines::Role;
use crate::kill::reliability::Measured;
use crate::kill::reliability::seed;
use crate::kill::victim::Victim;

/// Sizes of a disk that is filled again and again.
const KILOBYTES: [u64; 3] = [3_584, 4_352, 5_120];

/// Its size in the end, which is enough.
const KILOBYTES_MAX: u64 = 64 * 1_024;

/// How often a file is opened while its disk is full or read-only.
const ATTEMPTS: u64 = 3;

/// How often a disk fails.
const FAILURES: u64 = 5;

/// Size of a disk that fails.
const MEGABYTES: u64 = 16;

/// Processes that are killed once there is room again.
const KILLS: u64 = 5;

#[test]
fn a_full_disk_stops_the_engine_and_loses_nothing() {
    let measured = Measured::begin("full-disk");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let point = folder.path().join("small");
    let disk = match Disk::in_memory(&point, KILOBYTES[0]) {
        Ok(disk) => disk,
        Err(reason) => return measured.skip(&reason),
    };
    let mut victim = Victim::new(&point, seed());
    for kilobytes in KILOBYTES {
        disk.resize(kilobytes);
        let why = victim.live_until_stopped(Role::Filler, || {});
        assert!(why.contains("No space left"), "{why}");
        for _ in 0..ATTEMPTS {
            let why = victim.live_until_stopped(Role::Filler, || {});
            assert!(why.contains("No space left"), "{why}");
        }
        victim.must_be_innocent();
    }
    let mut copied = victim.clone();
    copied.file = folder.path().join("copy.redb");
    std::fs::copy(&victim.file, &copied.file).expect("there is room for a copy elsewhere");
    finish(&mut copied);
    disk.resize(KILOBYTES_MAX);
    finish(&mut victim);
    println!("the disk was filled {} times: {:?}", KILOBYTES.len(), victim.ledger.counters);
    measured.end(KILOBYTES.len() as u64, victim.ledger.findings.total() + copied.ledger.findings.total());
}

#[test]
fn a_disk_that_becomes_read_only_under_load_stops_the_engine_and_loses_nothing() {
    let measured = Measured::begin("read-only-disk");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let point = folder.path().join("failing");
    let disk = match Disk::in_file(&point, &folder.path().join("image"), MEGABYTES) {
        Ok(disk) => disk,
        Err(reason) => return measured.skip(&reason),
    };
    let mut victim = Victim::new(&point, seed());
    victim.live(Role::Worker);
    for _ in 0..FAILURES {
        let why = victim.live_until_stopped(Role::Worker, || disk.fail());
        assert!(why.contains("Read-only") || why.contains("Input/output"), "{why}");
        let why = victim.live_until_stopped(Role::Worker, || {});
        assert!(why.contains("Read-only"), "{why}");
        disk.repair();
        victim.must_be_innocent();
    }
    disk.make_read_only();
    let before = std::fs::read(&victim.file).expect("the file can be read");
    let why = victim.live_until_stopped(Role::Worker, || {});
    assert!(why.contains("Read-only"), "{why}");
    assert!(std::fs::read(&victim.file).expect("the file can be read") == before, "it was left untouched");
    disk.repair();
    finish(&mut victim);
    println!("the disk failed {FAILURES} times: {:?}", victim.ledger.counters);
    measured.end(FAILURES, victim.ledger.findings.total());
}

/// Goes on as if nothing had happened, then handles all that is there.
fn finish(victim: &mut Victim) {
    for _ in 0..KILLS {
        victim.live(Role::Worker);
        victim.must_be_innocent();
    }
    victim.drain();
    victim.verify();
    victim.must_be_innocent();
}
