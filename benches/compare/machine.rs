//! On which machine it was measured, without which no number means anything.

use std::fs;
use std::path::Path;
use std::process::Command;

/// A sentence on the machine, the disk and the versions.
pub(crate) fn describe(dir: Option<&Path>, rounds: u32) -> String {
    let cores =
        std::thread::available_parallelism().map_or_else(|_| "?".to_owned(), |cores| cores.to_string());
    let processor = value("/proc/cpuinfo", "model name").unwrap_or_else(|| "processor unknown".to_owned());
    let memory = memory().unwrap_or_else(|| "memory unknown".to_owned());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let place = dir.map_or_else(std::env::temp_dir, Path::to_owned);
    let (disk, sync) = (file_system(&place), sqlite_sync());
    let commit = commit().unwrap_or_else(|| "commit unknown".to_owned());
    let (version, sqlite) = (env!("CARGO_PKG_VERSION"), rusqlite::version());
    format!(
        "{cores} cores, {processor}, {memory}; {} {}; {disk}.\nseriatim {version} ({commit}), SQLite {sqlite} \
         (WAL, synchronous=FULL, {sync}). Medians of {rounds}; two numbers in a cell are seriatim's and SQLite's.\n",
        std::env::consts::OS,
        kernel.trim(),
    )
}

/// SQLite's own fsync writes the file's times too, unless it was told at its compilation that there is fdatasync.
fn sqlite_sync() -> &'static str {
    match option_env!("LIBSQLITE3_FLAGS") {
        Some(flags) if flags.contains("HAVE_FDATASYNC") => "fdatasync",
        _ => "fsync",
    }
}

fn memory() -> Option<String> {
    let kib: f64 = value("/proc/meminfo", "MemTotal")?.split(' ').next()?.parse().ok()?;
    Some(format!("{:.0} GiB", kib / f64::from(1 << 20)))
}

/// The value behind a name and a colon.
fn value(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The file system that holds a folder: the mount whose path is the longest that leads there.
fn file_system(folder: &Path) -> String {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let (device, at, kind) = (fields.next()?, fields.next()?, fields.next()?);
        folder.starts_with(at).then(|| (at.len(), format!("{kind} on {device}")))
    });
    mounts.max_by_key(|(len, _)| *len).map_or_else(|| "file system unknown".to_owned(), |(_, found)| found)
}

fn commit() -> Option<String> {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
