//! Puts figures into a document, between two marks.

use std::fs;
use std::path::Path;

use crate::bench::BenchError;

const BEGIN: &str = "<!-- figures: begin -->";
const END: &str = "<!-- figures: end -->";

/// Replaces what stands between the marks.
pub(crate) fn write(path: &Path, figures: &str) -> Result<(), BenchError> {
    let what = format!("write the figures to {}", path.display());
    let text = fs::read_to_string(path).map_err(BenchError::system(&*what))?;
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let Some((before, after)) = parts else {
        return Err(BenchError::system(what)(format!("it has no {BEGIN} and {END}")));
    };
    let text = format!("{before}{BEGIN}\n{}\n{END}{after}", figures.trim_end());
    fs::write(path, text).map_err(BenchError::system(what))
}
