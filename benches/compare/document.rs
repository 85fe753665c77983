//! Puts figures into a document, between two marks.

use std::fs;
use std::path::Path;

use crate::bench::BenchError;

/// Replaces what stands between the marks of this name.
pub(crate) fn write(path: &Path, name: &str, figures: &str) -> Result<(), BenchError> {
    let (begin, end) = (format!("<!-- {name}: begin -->"), format!("<!-- {name}: end -->"));
    let what = format!("write the figures to {}", path.display());
    let text = fs::read_to_string(path).map_err(BenchError::system(&*what))?;
    let parts = text.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    let Some((before, after)) = parts else {
        return Err(BenchError::system(what)(format!("it has no {begin} and {end}")));
    };
    let text = format!("{before}{begin}\n{}\n{end}{after}", figures.trim_end());
    fs::write(path, text).map_err(BenchError::system(what))
}
