//! Rows of the journal.

use xxhash_rust::xxh3::xxh3_64;

use crate::engine::store::codec;
use crate::engine::store::journal_row::RowReader;
use crate::engine::store::journal_row::RowWriter;
use crate::engine::store::key::parts_of;
use crate::engine::store::schema::visit_each;
use crate::engine::store::table::Table;
use crate::engine::store::table::TableVisitor;
use crate::error::Fault;

/// Reads bytes as a journal row: as they are, which is refused, and with the checksum that fits them.
pub fn journal(data: &[u8]) {
    let checksummed = [data, &xxh3_64(data).to_le_bytes()].concat();
    if data.len() >= 8 && data[data.len() - 8..] != xxh3_64(&data[..data.len() - 8]).to_le_bytes() {
        assert!(RowReader::open(data).is_err(), "a row without its checksum is served");
    }
    let Ok(rows) = read(&checksummed) else { return };
    // What was read is written, and read again, as the same.
    let (header, _, _) = RowReader::open(&checksummed).expect("it was read before");
    let mut writer = RowWriter::new(&header, Vec::new());
    for (number, rows) in &rows {
        writer.begin_table(*number);
        visit_each(&mut RowsOf { number: *number, rows, writer: &mut writer })
            .expect("nothing is asked of a disk");
        writer.end_table();
    }
    let (written, _) = writer.finish();
    let read = read(&written).expect("what was written can be read");
    assert!(read.len() == rows.len(), "a table is lost");
}

type Rows = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// The rows of a journal row, table by table.
fn read(checksummed: &[u8]) -> Result<Vec<(u8, Rows)>, Fault> {
    let (_, _, mut reader) = RowReader::open(checksummed)?;
    let mut tables = Vec::new();
    while let Some(number) = reader.next_table()? {
        let mut rows = Vec::new();
        while let Some((key, value)) = reader.next_row()? {
            rows.push((key.to_vec(), value.map(<[u8]>::to_vec)));
        }
        tables.push((number, rows));
    }
    Ok(tables)
}

/// Writes those rows of a table that make sense.
struct RowsOf<'a> {
    number: u8,
    rows: &'a Rows,
    writer: &'a mut RowWriter,
}

impl TableVisitor for RowsOf<'_> {
    fn visit<T: Table>(&mut self) -> Result<(), Fault> {
        if self.number != T::NUMBER {
            return Ok(());
        }
        for (key, value) in self.rows {
            let Some((prefix, key)) = parts_of::<T::Prefix, T::Key>(key) else { continue };
            let value = value.as_deref().map(codec::decode::<T::Value>);
            match value {
                Some(None) => {}
                Some(Some(value)) => self.writer.write(&prefix, &key, Some(&value)),
                None => self.writer.write(&prefix, &key, None::<&T::Value>),
            }
        }
        Ok(())
    }
}
