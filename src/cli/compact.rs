//! `seriatim compact`: a closed file becomes as small as what it holds.

use crate::cli::arguments::keep::CompactArguments;
use crate::cli::failure::CliFailure;
use crate::cli::out::Stdout;

/// Compacts a file.
pub(crate) fn run(arguments: &CompactArguments) -> Result<bool, CliFailure> {
    let out = Stdout::new(arguments.json);
    let found = seriatim::store::compact(&arguments.file)?;
    out.json(&found)?;
    let (before, after) = (kib(found.bytes_before), kib(found.bytes_after));
    out.say(format!("{}: {before} KiB before, {after} KiB now", arguments.file.display()))?;
    Ok(true)
}

/// Whole KiB, none of which is left out.
fn kib(bytes: u64) -> u64 {
    bytes.div_ceil(1024)
}
