//! Which page of a damaged file is not what was written, and where it is.
//!
//! redb writes pages that point to pages, each with the checksum of what it points to: from the commit slot in force to a tree
//! of tables, and from there to the tree of each table. This follows them without believing any that does not fit.

use std::fs::File;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::ops::Range;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use crate::engine::store::header::FLAGS;
use crate::engine::store::header::LEN as HEADER_LEN;
use crate::engine::store::header::PAGE_BYTES;
use crate::engine::store::header::REGION_HEADER_PAGES;
use crate::engine::store::header::REGION_PAGES;
use crate::engine::store::header::SLOTS;

/// In a commit slot: whether there is a tree, and its root.
const ROOTS: [(usize, usize); 2] = [(1, 8), (2, 40)];

/// The first byte of a page.
const LEAF: u8 = 1;
const BRANCH: u8 = 2;

/// What a table is that points to one page for each tree; others keep trees inside of their values.
const PLAIN_TABLE: u8 = 3;

/// Most bytes of a page: larger ones are not ours, and a damaged number must not take all memory.
const PAGE_BYTES_MAX: u64 = 1 << 32;

/// Adds to what is wrong with a file the place of the first page that does not fit, where one is found.
pub(crate) fn with_place(path: &Path, problem: &str) -> String {
    match File::open(path).ok().and_then(|mut file| damaged_page(&mut file)) {
        Some(page) => {
            format!("{problem}; the first damaged page is bytes {} to {}", page.start, page.end - 1)
        }
        None => problem.to_owned(),
    }
}

/// The bytes of the first page to which the last commit leads, and which is not what was written.
fn damaged_page(file: &mut File) -> Option<Range<u64>> {
    let len = file.metadata().ok()?.len();
    let header = read(file, &(0..HEADER_LEN as u64))?;
    let number = |at: usize| header.u32_at(at).map(u64::from);
    let page_bytes = number(PAGE_BYTES).filter(|bytes| *bytes > 0)?;
    let (region_header, region) = (number(REGION_HEADER_PAGES)?, number(REGION_PAGES)?);
    let layout = Layout { page_bytes, region_header, region };
    let slot = SLOTS[usize::from(header.0[FLAGS] & 1)].start;
    let mut stack = Vec::new();
    for (is_there, root) in ROOTS {
        if header.0[slot + is_there] != 0 {
            stack.push((header.pointer_at(slot + root)?, Shape { lists_tables: true, ..Shape::default() }));
        }
    }
    // Every page is met once; one that is damaged ends it.
    for _ in 0..=len / page_bytes {
        let (pointer, shape) = stack.pop()?;
        let place = layout.place(pointer.page);
        let fits = |page: &PageBytes| {
            page.end(shape).is_some_and(|end| page.checksum(end) == Some(pointer.checksum))
        };
        let Some(page) = read(file, &place).filter(fits) else { return Some(place) };
        let below = page.below(shape);
        let Some(below) = below else { return Some(place) };
        stack.extend(below);
    }
    None
}

/// How a file is divided.
struct Layout {
    page_bytes: u64,
    region_header: u64,
    region: u64,
}

impl Layout {
    /// The bytes of a page, by its number: its place in a region, the region, and how often its size is doubled.
    fn place(&self, page: u64) -> Range<u64> {
        let order = page >> 59;
        let (index, region) = (page & (0x000f_ffff >> order), (page >> 20) & 0x000f_ffff);
        let bytes = self.page_bytes.checked_shl(u32::try_from(order).unwrap_or(u32::MAX)).unwrap_or(u64::MAX);
        let pages_before = 1 + region * (self.region_header + self.region) + self.region_header;
        let start = pages_before.saturating_mul(self.page_bytes).saturating_add(index.saturating_mul(bytes));
        start..start.saturating_add(bytes)
    }
}

/// A page as the one above it names it.
#[derive(Clone, Copy)]
struct PagePointer {
    page: u64,
    checksum: u128,
}

/// What the pages of a tree hold: how long its keys and values are, where that is fixed, and whether the values are tables.
#[derive(Clone, Copy, Default)]
struct Shape {
    key: Option<usize>,
    value: Option<usize>,
    lists_tables: bool,
}

/// Bytes that may make no sense.
struct PageBytes(Vec<u8>);

fn read(file: &mut File, place: &Range<u64>) -> Option<PageBytes> {
    let len = place.end.checked_sub(place.start).filter(|len| *len <= PAGE_BYTES_MAX)?;
    if file.metadata().ok()?.len() < place.end {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(len).ok()?];
    file.seek(SeekFrom::Start(place.start)).ok()?;
    file.read_exact(&mut bytes).ok()?;
    Some(PageBytes(bytes))
}

impl PageBytes {
    fn array_at<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn u32_at(&self, at: usize) -> Option<u32> {
        self.array_at(at).map(u32::from_le_bytes)
    }

    fn offset_at(&self, at: usize) -> Option<usize> {
        usize::try_from(self.u32_at(at)?).ok()
    }

    fn pointer_at(&self, at: usize) -> Option<PagePointer> {
        let page = self.array_at(at).map(u64::from_le_bytes)?;
        let checksum = self.array_at(at + 8).map(u128::from_le_bytes)?;
        Some(PagePointer { page, checksum })
    }

    fn checksum(&self, end: usize) -> Option<u128> {
        Some(xxh3_128(self.0.get(..end)?))
    }

    /// How many pairs a leaf has, or keys a branch.
    fn count(&self) -> Option<usize> {
        let count = usize::from(self.array_at(2).map(u16::from_le_bytes)?);
        (count > 0).then_some(count)
    }

    /// Where what a page says ends; what is behind it is left over.
    fn end(&self, shape: Shape) -> Option<usize> {
        let count = self.count()?;
        match *self.0.first()? {
            LEAF => self.value_end(shape, count - 1),
            BRANCH => {
                let keys = 8 + 24 * (count + 1);
                match shape.key {
                    Some(width) => Some(keys + width * count),
                    None => self.offset_at(keys + 4 * (count - 1)),
                }
            }
            _ => None,
        }
    }

    /// Where the keys of a leaf end, and with them where its values begin.
    fn keys_end(&self, shape: Shape) -> Option<usize> {
        let count = self.count()?;
        let ends = |width: Option<usize>| if width.is_none() { 4 * count } else { 0 };
        match shape.key {
            Some(width) => Some(4 + ends(shape.key) + ends(shape.value) + width * count),
            None => self.offset_at(4 + 4 * (count - 1)),
        }
    }

    fn value_end(&self, shape: Shape, number: usize) -> Option<usize> {
        match shape.value {
            Some(width) => Some(self.keys_end(shape)? + width * (number + 1)),
            None => {
                let key_ends = if shape.key.is_none() { 4 * self.count()? } else { 0 };
                self.offset_at(4 + key_ends + 4 * number)
            }
        }
    }

    /// The pages below this one: a branch's children, or the trees of the tables in a leaf. `None` when they make no sense.
    fn below(&self, shape: Shape) -> Option<Vec<(PagePointer, Shape)>> {
        let count = self.count()?;
        let mut below = Vec::new();
        if self.0.first() == Some(&BRANCH) {
            for child in 0..=count {
                let page = self.array_at(8 + 16 * (count + 1) + 8 * child).map(u64::from_le_bytes)?;
                let checksum = self.array_at(8 + 16 * child).map(u128::from_le_bytes)?;
                below.push((PagePointer { page, checksum }, shape));
            }
        } else if shape.lists_tables {
            let mut start = self.keys_end(shape)?;
            for number in 0..count {
                let end = self.value_end(shape, number)?;
                below.extend(table(self.0.get(start..end)?));
                start = end;
            }
        }
        Some(below)
    }
}

/// The root of a table's tree, from what is kept of the table; nothing for an empty one.
fn table(kept: &[u8]) -> Option<(PagePointer, Shape)> {
    let kept = PageBytes(kept.to_vec());
    let is_set = |at: usize| kept.0.get(at).is_some_and(|byte| *byte != 0);
    if kept.0.first() != Some(&PLAIN_TABLE) || !is_set(9) {
        return None;
    }
    let width = |at: usize| if is_set(at) { kept.offset_at(at + 1) } else { None };
    Some((kept.pointer_at(10)?, Shape { key: width(42), value: width(47), lists_tables: false }))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use redb::Database;
    use redb::TableDefinition;

    use super::*;

    const NAMES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("names");
    const NUMBERS: TableDefinition<'_, u64, u64> = TableDefinition::new("numbers");

    /// A file with trees of several levels.
    fn file(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("a");
        let database = Database::create(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        {
            let mut names = transaction.open_table(NAMES).unwrap();
            let mut numbers = transaction.open_table(NUMBERS).unwrap();
            for number in 0..4_000_u64 {
                let key = number.to_be_bytes();
                names.insert(key.as_slice(), format!("a name of {number}").as_bytes()).unwrap();
                numbers.insert(number, number).unwrap();
            }
        }
        transaction.commit().unwrap();
        path
    }

    #[test]
    fn a_sound_file_has_no_damaged_page() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(damaged_page(&mut File::open(file(folder.path())).unwrap()), None);
    }

    #[test]
    fn the_page_is_named_in_which_a_byte_was_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path());
        let sound = std::fs::read(&path).unwrap();
        let mut found = 0;
        for at in (4_096 + 64..sound.len()).step_by(4_096) {
            let mut changed = sound.clone();
            changed[at] ^= 1;
            File::create(&path).unwrap().write_all(&changed).unwrap();
            if let Some(page) = damaged_page(&mut File::open(&path).unwrap()) {
                assert!(page.contains(&(at as u64)), "{at} is not in {page:?}");
                let described = with_place(&path, "why");
                assert_eq!(
                    described,
                    format!("why; the first damaged page is bytes {} to {}", page.start, page.end - 1)
                );
                found += 1;
            }
        }
        assert!(found > 50, "only {found}: the trees were not followed");
    }

    #[test]
    fn bytes_without_sense_are_no_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b");
        for bytes in [vec![], vec![0; 10], vec![0xff; 400], vec![0; 10_000]] {
            std::fs::write(&path, bytes).unwrap();
            let _ = damaged_page(&mut File::open(&path).unwrap());
        }
    }
}
