//! The power is cut behind every operation of an upgrade: what is left is opened, and holds what it held.

use redb::Database;
use redb::ReadableTable;
use redb::TableDefinition;

use crate::engine::store::Store;
use crate::engine::tests::crash::cut::Cutter;
use crate::engine::tests::crash::cut::Mode;
use crate::engine::tests::crash::disk::Disk;
use crate::engine::tests::crash::disk::Op;
use crate::engine::tests::crash::image::Image;
use crate::engine::tests::crash::random::Random;
use crate::engine::tests::crash::setting::Setting;
use crate::engine::tests::crash::setting::Tried;
use crate::engine::tests::crash::setting::cuts_every;
use crate::engine::tests::crash::setting::quietly;

/// Killed while they flushed; as packed by `tests/older/packed.rs`.
pub(crate) const FORMAT_3: &[u8] = include_bytes!("../../../../tests/older/format-3-folding.packed");
const FORMAT_4: &[u8] = include_bytes!("../../../../tests/older/format-4-folding.packed");

const BLOCK: usize = 256;

/// How what is left is opened.
pub(crate) const ROOMY: Setting = Setting { strict: false, cramped: false };

pub(crate) fn older(packed: &[u8]) -> Image {
    let (len, blocks) = packed.split_first_chunk::<8>().unwrap();
    let mut image = Image::default();
    image.set_len(usize::try_from(u64::from_le_bytes(*len)).unwrap());
    for block in blocks.chunks(4 + BLOCK) {
        let (number, bytes) = block.split_first_chunk::<4>().unwrap();
        image.write(BLOCK * usize::try_from(u32::from_le_bytes(*number)).unwrap(), bytes);
    }
    image
}

/// Opens what is on a disk; the hash of all that it holds.
pub(crate) fn content(disk: Disk, setting: Setting) -> Result<u64, String> {
    let opened = quietly(|| {
        let mut store = Store::open_backend(disk, setting.options()).map_err(|error| error.to_string())?;
        store.content_hash().map_err(|fault| fault.to_string())
    });
    opened.unwrap_or_else(|| Err("it panicked".to_owned()))
}

#[test]
fn a_power_cut_at_any_point_of_an_upgrade_leaves_a_file_that_opens_with_all_it_held() {
    for packed in [FORMAT_3, FORMAT_4] {
        cut_upgrade_of(&older(packed));
    }
}

fn cut_upgrade_of(older: &Image) {
    let mut tried = Tried::new("cut upgrade");
    let held = content(Disk::new(older.clone()), ROOMY).unwrap();
    for setting in [ROOMY, Setting { strict: true, cramped: true }] {
        let disk = Disk::recording(older.clone());
        assert_eq!(content(disk.clone(), setting), Ok(held));
        let log = disk.take_log();
        assert!(log.iter().filter(|op| matches!(op, Op::Sync)).count() > 1);
        cut_along((older.clone(), &log), held, &format!("{setting:?}"), &mut tried);
    }
    tried.finish();
}

/// Cuts the power behind the operations that were done to a file. What is left has to open and to hold the same.
pub(crate) fn cut_along((before, log): (Image, &[Op]), held: u64, what: &str, tried: &mut Tried) {
    let (mut cutter, mut random, every) = (Cutter::new(before, log), Random::new(1), cuts_every());
    for ops in 0..=log.len() {
        if ops % every == 0 {
            tried.count("points");
            // One way a point: a page is much like the next, and each way comes up often.
            let mode = random.pick(&Mode::EVERY);
            let found = content(Disk::new(cutter.image(mode, &mut random)), ROOMY);
            if found != Ok(held) {
                tried.failures.push(format!("{what}, cut behind {ops}, {mode:?}: {found:?}"));
            }
        }
        cutter.advance(&mut random);
    }
}

#[test]
fn an_older_file_with_a_damaged_row_is_refused_and_left_as_it_was() {
    let disk = Disk::new(older(FORMAT_4));
    let database = Database::builder().create_with_backend(disk.clone()).unwrap();
    let transaction = database.begin_write().unwrap();
    let mut table = transaction.open_table(TableDefinition::<&[u8], &[u8]>::new("messages")).unwrap();
    let (key, mut row) = {
        let (key, row) = table.last().unwrap().expect("it has messages");
        (key.value().to_vec(), row.value().to_vec())
    };
    row[0] ^= 1;
    table.insert(key.as_slice(), row.as_slice()).unwrap();
    drop(table);
    transaction.commit().unwrap();
    drop(database);
    for _ in 0..2 {
        let found = content(disk.clone(), ROOMY);
        assert!(found.as_ref().is_err_and(|error| error.contains("a checksum does not fit")), "{found:?}");
    }
}
