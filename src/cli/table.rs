//! Columns that stand under each other.

use std::fmt;

use crate::cli::out::printable;

/// Space between two columns.
const BETWEEN: &str = "  ";

/// Rows of cells under a heading.
pub(crate) struct TextTable {
    heading: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// A heading that begins with `>` is one of a column of numbers.
    pub(crate) fn new(heading: &[&'static str]) -> TextTable {
        TextTable { heading: heading.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| printable(&cell)).collect());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let heading = name(self.heading[column]).chars().count();
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default().max(heading)
    }
}

fn name(heading: &str) -> &str {
    heading.trim_start_matches('>')
}

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<usize> = (0..self.heading.len()).map(|column| self.width(column)).collect();
        let line = |cells: Vec<&str>| {
            let aligned = cells.iter().zip(&widths).zip(&self.heading).map(|((cell, &width), heading)| {
                match heading.starts_with('>') {
                    true => format!("{cell:>width$}"),
                    false => format!("{cell:<width$}"),
                }
            });
            aligned.collect::<Vec<_>>().join(BETWEEN).trim_end().to_owned()
        };
        f.write_str(&line(self.heading.iter().map(|heading| name(heading)).collect()))?;
        for row in &self.rows {
            write!(f, "\n{}", line(row.iter().map(String::as_str).collect()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_each_other_and_numbers_end_under_each_other() {
        let mut table = TextTable::new(&["queue", ">ready", "last error"]);
        table.row(["orders".to_owned(), "7".to_owned(), String::new()]);
        table.row(["o".to_owned(), "1200000".to_owned(), "no\nroute".to_owned()]);
        let expected = "queue     ready  last error\n\
                        orders        7\n\
                        o       1200000  no route";
        assert_eq!(table.to_string(), expected);
    }
}
