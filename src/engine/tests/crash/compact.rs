//! The power is cut behind every operation of a compaction: what is left is opened, and holds what it held.

use crate::engine::store::Store;
use crate::engine::tests::crash::cut::Cutter;
use crate::engine::tests::crash::cut::Mode;
use crate::engine::tests::crash::disk::Disk;
use crate::engine::tests::crash::random::Random;
use crate::engine::tests::crash::setting::Setting;
use crate::engine::tests::crash::setting::Tried;
use crate::engine::tests::crash::setting::cuts_every;
use crate::engine::tests::crash::upgrade::FORMAT_3;
use crate::engine::tests::crash::upgrade::content;
use crate::engine::tests::crash::upgrade::older;

#[test]
fn a_power_cut_at_any_point_of_a_compaction_leaves_a_file_that_opens_with_all_it_held() {
    let mut tried = Tried::new("cut compaction");
    let setting = Setting { strict: false, cramped: false };
    // An upgrade leaves the room of what it has written anew.
    let upgraded = Disk::new(older(FORMAT_3));
    let held = content(upgraded.clone(), setting).unwrap();
    let before = upgraded.image();
    let disk = Disk::recording(before.clone());
    Store::open_backend(disk.clone(), setting.options()).unwrap().compact().unwrap();
    assert!(disk.image().len() < before.len(), "there was nothing to give back");
    let log = disk.take_log();
    let (mut cutter, mut random, every) = (Cutter::new(before, &log), Random::new(1), cuts_every());
    for ops in 0..=log.len() {
        if ops % every == 0 {
            tried.count("points");
            let mode = random.pick(&Mode::EVERY);
            let found = content(Disk::new(cutter.image(mode, &mut random)), setting);
            if found != Ok(held) {
                tried.failures.push(format!("cut behind {ops}, {mode:?}: {found:?}"));
            }
        }
        cutter.advance(&mut random);
    }
    tried.finish();
}
