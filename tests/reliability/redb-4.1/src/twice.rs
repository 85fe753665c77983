//! The power fails, and again while the file recovers.

use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use crate::engine::tests::crash::cut::Cutter;
use crate::engine::tests::crash::cut::Mode;
use crate::engine::tests::crash::disk::Disk;
use crate::engine::tests::crash::image::Image;
use crate::engine::tests::crash::random::Random;
use crate::ledger;
use crate::ledger::Rows;
use crate::ledger::Story;

/// Commits of one story.
const COMMITS: u64 = 12;
/// Of the first cuts, one in so many is cut again at every operation of its recovery.
const CUT_AGAIN_IN: u64 = 3;
/// The stories that are played; three of them find it.
const STORIES: std::ops::Range<u64> = 48..70;

#[derive(Default)]
struct Found {
    reopens: u64,
    lost: u64,
    broken: u64,
}

/// Opens what is left, and says what is in it; an error, too, when it panics.
fn reopen(disk: Disk) -> Result<Rows, String> {
    let opened = catch_unwind(AssertUnwindSafe(|| ledger::rows(&ledger::open(disk)?)));
    opened.unwrap_or_else(|_| Err("it panicked".to_owned()))
}

/// Opens what is left by a disk that writes down how it recovers; the power fails before it is closed.
fn recover(image: &Image) -> Option<(Rows, Disk)> {
    let disk = Disk::recording(image.clone());
    let recovered = catch_unwind(AssertUnwindSafe(|| {
        let database = ledger::open(disk.clone())?;
        let rows = ledger::rows(&database)?;
        std::mem::forget(database);
        Ok::<Rows, String>(rows)
    }));
    Some((recovered.ok()?.ok()?, disk))
}

fn sweep(story: &Story, random: &mut Random, found: &mut Found) {
    let mut cutter = Cutter::new(Image::default(), &story.log);
    for ops in 0..=story.log.len() {
        if story.opened <= ops && random.below(CUT_AGAIN_IN) == 0 {
            let mode = random.pick(&Mode::EVERY);
            cut_again(&cutter.image(mode, random), random, found);
        }
        cutter.advance(random);
    }
}

/// Cuts a recovery behind each of its operations: what it had recovered must be there at the next opening.
fn cut_again(image: &Image, random: &mut Random, found: &mut Found) {
    let Some((recovered, disk)) = recover(image) else { return };
    let log = disk.take_log();
    let mut cutter = Cutter::new(image.clone(), &log);
    for _ in 0..=log.len() {
        let mode = random.pick(&Mode::EVERY);
        found.reopens += 1;
        match reopen(Disk::new(cutter.image(mode, random))) {
            Ok(rows) if rows == recovered => {}
            Ok(_) => found.lost += 1,
            Err(_) => found.broken += 1,
        }
        cutter.advance(random);
    }
}

#[test]
fn a_second_power_cut_loses_acknowledged_commits_of_redb_4_1() {
    let (mut found, began) = (Found::default(), std::time::Instant::now());
    std::panic::set_hook(Box::new(|_| {}));
    for seed in STORIES {
        let story = ledger::story(seed, COMMITS);
        sweep(&story, &mut Random::new(seed), &mut found);
    }
    drop(std::panic::take_hook());
    let Found { reopens, lost, broken } = found;
    println!(
        "reliability: {{\"name\":\"control: redb 4.1.0, cut twice\",\"counts\":{{\"reopens\":{reopens},\"lost\":{lost},\"broken\":{broken}}},\"seconds\":{:.1},\"failures\":0}}",
        began.elapsed().as_secs_f64()
    );
    assert!(lost > 0, "what redb 4.1.0 loses is seen");
}
