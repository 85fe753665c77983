//! How long a file takes to open after its process was killed.

use std::path::Path;
use std::process::Command;
use std::process::Stdio;

use seriatim::BareStore;
use seriatim::Clock;
use seriatim::SystemClock;

use crate::bench::BenchError;
use crate::bench::folder::Folder;
use crate::rate;

const BATCH: usize = 1_024;

/// One file: its size, and how long it took to open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reopened {
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
}

/// Fills a file with messages and dies without closing it.
pub(crate) fn fill_and_die(path: &Path, messages: usize) -> Result<(), BenchError> {
    let mut store = open(path)?;
    rate(BATCH, messages, |batch| {
        store.append(batch).map_err(|error| BenchError::system("append to the store")(error))
    })?;
    std::process::abort()
}

/// Lets a process fill a file and die, then opens what it has left.
pub(crate) fn reopen(dir: Option<&Path>, messages: usize) -> Result<Reopened, BenchError> {
    let folder = Folder::make(dir)?;
    let path = folder.path().join("store.redb");
    let program = std::env::current_exe().map_err(BenchError::system("find this program"))?;
    let mut child = Command::new(program);
    child.args(["--bench", "--reopen", &messages.to_string()]).arg("--fill").arg(&path).stderr(Stdio::null());
    // It dies on purpose, so what it says at its end means nothing.
    child.status().map_err(BenchError::system("fill a file"))?;
    let bytes = std::fs::metadata(&path).map_err(BenchError::system("look at the file"))?.len();
    let clock = SystemClock::default();
    let started = clock.elapsed();
    drop(open(&path)?);
    Ok(Reopened { bytes, seconds: (clock.elapsed() - started).as_secs_f64() })
}

fn open(path: &Path) -> Result<BareStore, BenchError> {
    BareStore::open(path).map_err(|error| BenchError::system("open the store")(error))
}
