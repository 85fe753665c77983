//! The power is cut behind every operation of a compaction: what is left is opened, and holds what it held.

use crate::engine::store::Store;
use crate::engine::tests::crash::disk::Disk;
use crate::engine::tests::crash::setting::Tried;
use crate::engine::tests::crash::upgrade::FORMAT_3;
use crate::engine::tests::crash::upgrade::ROOMY;
use crate::engine::tests::crash::upgrade::content;
use crate::engine::tests::crash::upgrade::cut_along;
use crate::engine::tests::crash::upgrade::older;

#[test]
fn a_power_cut_at_any_point_of_a_compaction_leaves_a_file_that_opens_with_all_it_held() {
    let mut tried = Tried::new("cut compaction");
    // An upgrade leaves the room of what it has written anew.
    let upgraded = Disk::new(older(FORMAT_3));
    let held = content(upgraded.clone(), ROOMY).unwrap();
    let before = upgraded.image();
    let disk = Disk::recording(before.clone());
    Store::open_backend(disk.clone(), ROOMY.options()).unwrap().compact().unwrap();
    assert!(disk.image().len() < before.len(), "there was nothing to give back");
    let log = disk.take_log();
    cut_along((before, &log), held, "compacted", &mut tried);
    tried.finish();
}
