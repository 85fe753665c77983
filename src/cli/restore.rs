//! `seriatim restore`: a verified backup takes the place of a file that nobody has open.

use std::fs;
use std::fs::File;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use serde_json::json;
use seriatim::error::OpenError;
use seriatim::store::LockFile;

use crate::cli::arguments::keep::RestoreArguments;
use crate::cli::durable_file::private;
use crate::cli::durable_file::sync_folder_of;
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
    let there = store_at(&target)?;
    if there.is_some() && !arguments.force {
        return Err(CliFailure::Refused(format!(
            "restore: {} is there already; --force puts the backup in its place, and keeps it beside",
            target.display()
        )));
    }
    let traces = Traces::of(&arguments.data, there.as_deref().unwrap_or(&target));
    fs::create_dir_all(&arguments.data).map_err(|error| named(&arguments.data, &error))?;
    let restored = put(arguments, &target, there.as_deref(), &out);
    if restored.is_err() {
        traces.remove();
    }
    restored
}

/// The file that is there, behind the link if it is one, which then stays: another disk may be meant. A link to nothing is refused, as
/// an engine does.
fn store_at(target: &Path) -> Result<Option<PathBuf>, CliFailure> {
    match target.canonicalize() {
        Ok(place) => Ok(Some(place)),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(named(target, &error).into()),
        Err(_) if target.is_symlink() => Err(CliFailure::Refused(format!(
            "restore: {} is a link to a file that is not there",
            target.display()
        ))),
        Err(_) => Ok(None),
    }
}

/// What was not there before a restore, and is to go when it fails.
struct Traces {
    lock: Option<PathBuf>,
    folder: Option<PathBuf>,
}

impl Traces {
    fn of(folder: &Path, place: &Path) -> Traces {
        let missing = |path: PathBuf| Some(path).filter(|path| !path.exists());
        Traces { lock: missing(beside(place, ".lock")), folder: missing(folder.to_owned()) }
    }

    fn remove(&self) {
        self.lock.iter().for_each(|lock| drop(fs::remove_file(lock)));
        // One in which somebody has put something meanwhile stays.
        self.folder.iter().for_each(|folder| drop(fs::remove_dir(folder)));
    }
}

fn put(
    arguments: &RestoreArguments,
    target: &Path,
    there: Option<&Path>,
    out: &Stdout,
) -> Result<bool, CliFailure> {
    // Held until the backup is in its place, so that no daemon starts on a file that is being replaced.
    let place = there.unwrap_or(target);
    let _lock = lock(target, place)?;
    // A copy first: the file that is verified is the file that is used.
    let part = PartialCopy(beside(place, ".part"));
    copy(&arguments.file, &part.0)?;
    let found = verify(&part.0).map_err(|error| found_in(&arguments.file, error))?;
    if !found.is_sound() {
        let (file, damages) = (arguments.file.display(), found.damages_total);
        let problem =
            format!("restore: {file} is damaged in {damages} places; `seriatim verify {file}` names them");
        return Err(CliFailure::Refused(problem));
    }
    let old_file = there.map(keep_old).transpose()?;
    fs::rename(&part.0, place).map_err(|error| match &old_file {
        Some(old_file) => {
            let problem = format!("{error}; what was there before is {}", old_file.display());
            named(place, &io::Error::new(error.kind(), problem))
        }
        None => named(place, &error),
    })?;
    sync_folder_of(place).map_err(|error| named(place, &error))?;
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

fn verify(file: &Path) -> Result<seriatim::store::Verification, OpenError> {
    let progress = Progress::new("rows verified");
    let found = seriatim::store::verify(file, |step| progress.show(step.rows));
    progress.end();
    found
}

/// What is wrong with the copy is wrong with the backup, of which its owner knows.
fn found_in(backup: &Path, error: OpenError) -> OpenError {
    let path = backup.to_owned();
    match error {
        OpenError::Foreign { detail, .. } => OpenError::Foreign { path, detail },
        OpenError::Damaged { detail, .. } => OpenError::Damaged { path, detail },
        OpenError::Newer { found, known, .. } => OpenError::Newer { path, found, known },
        OpenError::Older { found, known, .. } => OpenError::Older { path, found, known },
        other => other,
    }
}

/// The lock of the engine's file.
fn lock(target: &Path, place: &Path) -> Result<LockFile, CliFailure> {
    LockFile::take(place).map_err(|error| match error {
        OpenError::Held { holder, .. } => {
            CliFailure::Refused(format!("restore {}: {holder} has it open; stop it first", target.display()))
        }
        error => error.into(),
    })
}

fn copy(from: &Path, to: &Path) -> Result<(), CliFailure> {
    let mut source = File::open(from).map_err(|error| named(from, &error))?;
    let made = private().create(true).truncate(true).open(to);
    let mut target = made.map_err(|error| named(to, &error))?;
    io::copy(&mut source, &mut target).map_err(|error| named(to, &error))?;
    Ok(target.sync_all().map_err(|error| named(to, &error))?)
}

/// Gives the file that is there another name, which nobody uses, beside its own: at no moment is there none.
fn keep_old(place: &Path) -> Result<PathBuf, CliFailure> {
    for number in 1..=1_000 {
        let old_file = beside(place, &format!(".replaced-{number}"));
        match fs::hard_link(place, &old_file) {
            Ok(()) => {
                sync_folder_of(place).map_err(|error| named(place, &error))?;
                return Ok(old_file);
            }
            Err(_) if fs::symlink_metadata(&old_file).is_ok() => {}
            // Not everywhere may a file have two names.
            Err(_) => {
                fs::rename(place, &old_file).map_err(|error| named(&old_file, &error))?;
                return Ok(old_file);
            }
        }
    }
    Err(CliFailure::Refused(format!("restore: too many replaced files are beside {}", place.display())))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("restore: {}: {error}", path.display()))
}
