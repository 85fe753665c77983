//! `seriatim restore`: a verified backup takes the place of a file that nobody has open.

use std::fs;
use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;

use serde_json::json;

use crate::cli::arguments::keep::RestoreArguments;
use crate::cli::failure::CliFailure;
use crate::cli::out::Stdout;
use crate::cli::progress::Progress;
use crate::cli::word::counted;

/// The name of the engine's file in a data folder.
const FILE: &str = "seriatim.redb";

/// Verifies a backup and puts it into a data folder; false when it is damaged.
pub(crate) fn run(arguments: &RestoreArguments) -> Result<bool, CliFailure> {
    let out = Stdout::new(arguments.json);
    let target = arguments.data.join(FILE);
    let exists = target.try_exists().map_err(|error| named(&target, &error))?;
    if exists && !arguments.force {
        return Err(CliFailure::Refused(format!(
            "restore: {} is there already; --force puts the backup in its place, and keeps it beside",
            target.display()
        )));
    }
    let traces = Traces::of(&arguments.data, &target);
    fs::create_dir_all(&arguments.data).map_err(|error| named(&arguments.data, &error))?;
    let restored = put(arguments, &target, exists, &out);
    if restored.is_err() {
        traces.remove();
    }
    restored
}

/// What was not there before a restore, and is to go when it fails.
struct Traces {
    lock: Option<PathBuf>,
    folder: Option<PathBuf>,
}

impl Traces {
    fn of(folder: &Path, target: &Path) -> Traces {
        let missing = |path: PathBuf| Some(path).filter(|path| !path.exists());
        Traces { lock: missing(beside(target, ".lock")), folder: missing(folder.to_owned()) }
    }

    fn remove(&self) {
        self.lock.iter().for_each(|lock| drop(fs::remove_file(lock)));
        // One in which somebody has put something meanwhile stays.
        self.folder.iter().for_each(|folder| drop(fs::remove_dir(folder)));
    }
}

fn put(arguments: &RestoreArguments, target: &Path, exists: bool, out: &Stdout) -> Result<bool, CliFailure> {
    // Held until the backup is in its place, so that no daemon starts on a file that is being replaced.
    let _lock = lock(target)?;
    // A copy first: the file that is verified is the file that is used.
    let part = PartialCopy(beside(target, ".part"));
    copy(&arguments.file, &part.0)?;
    let found = verify(&part.0)?;
    if !found.is_sound() {
        let (file, damages) = (arguments.file.display(), found.damages_total);
        let problem =
            format!("restore: {file} is damaged in {damages} places; `seriatim verify {file}` names them");
        return Err(CliFailure::Refused(problem));
    }
    let old_file = if exists { Some(keep_old(target)?) } else { None };
    fs::rename(&part.0, target).map_err(|error| named(target, &error))?;
    sync_folder(&arguments.data)?;
    out.json(&json!({ "file": target, "messages": found.messages, "kept": old_file }))?;
    let messages = counted(found.messages, "message");
    out.say(format!("{}: {messages}, restored and verified", target.display()))?;
    if let Some(old_file) = old_file {
        out.say(format!("what was there before is now {}", old_file.display()))?;
    }
    Ok(true)
}

/// A copy on its way; one that does not get to its place leaves nothing behind.
struct PartialCopy(PathBuf);

impl Drop for PartialCopy {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
        let _ = fs::remove_file(beside(&self.0, ".lock"));
    }
}

fn verify(file: &Path) -> Result<seriatim::store::Verification, CliFailure> {
    let progress = Progress::new("rows verified");
    let found = seriatim::store::verify(file, |step| progress.show(step.rows));
    progress.end();
    Ok(found?)
}

/// The lock of the engine's file, as an engine takes it.
fn lock(target: &Path) -> Result<File, CliFailure> {
    let path = beside(target, ".lock");
    let file = private().read(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|error| named(&path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::Error(error)) => Err(named(&path, &error).into()),
        Err(fs::TryLockError::WouldBlock) => {
            let holder = fs::read_to_string(&path).unwrap_or_default();
            let holder = holder.trim().parse::<u32>().map(|id| format!("process {id}"));
            let holder = holder.unwrap_or_else(|_| "another process".to_owned());
            Err(CliFailure::Refused(format!(
                "restore {}: {holder} has it open; stop it first",
                target.display()
            )))
        }
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), CliFailure> {
    let mut source = File::open(from).map_err(|error| named(from, &error))?;
    let made = private().create(true).truncate(true).open(to);
    let mut target = made.map_err(|error| named(to, &error))?;
    io::copy(&mut source, &mut target).map_err(|error| named(to, &error))?;
    Ok(target.sync_all().map_err(|error| named(to, &error))?)
}

/// How files of a data folder are made: what is in them is for nobody else on this machine.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

/// Moves the file that is there to a name nobody uses.
fn keep_old(target: &Path) -> Result<PathBuf, CliFailure> {
    for number in 1..=1_000 {
        let old_file = beside(target, &format!(".replaced-{number}"));
        if !old_file.try_exists().map_err(|error| named(&old_file, &error))? {
            fs::rename(target, &old_file).map_err(|error| named(&old_file, &error))?;
            return Ok(old_file);
        }
    }
    Err(CliFailure::Refused(format!("restore: too many replaced files are beside {}", target.display())))
}

/// A rename is on disk once its folder is.
fn sync_folder(folder: &Path) -> Result<(), CliFailure> {
    if cfg!(unix) {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| named(folder, &error))?;
    }
    Ok(())
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("restore: {}: {error}", path.display()))
}
