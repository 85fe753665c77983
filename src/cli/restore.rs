//! `seriatim restore`: a verified backup takes the place of a file that nobody has open.

use std::fs;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use serde_json::json;
use seriatim::error::OpenError;
use seriatim::store::LockFile;

use crate::cli::arguments::keep::RestoreArguments;
use crate::cli::durable_file::make_folder;
use crate::cli::durable_file::private;
use crate::cli::durable_file::sync_folder_of;
use crate::cli::failure::CliFailure;
use crate::cli::out::Stdout;
use crate::cli::out::remark;
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
    make_folder(&arguments.data).map_err(|error| named(&arguments.data, &error))?;
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
    let part = PartialCopy::of(&arguments.file, beside(place, ".part"))?;
    let found = verify(&part.0).map_err(|error| found_in(&arguments.file, error))?;
    if !found.is_sound() {
        let (file, damages) = (arguments.file.display(), found.damages_total);
        let problem =
            format!("restore: {file} is damaged in {damages} places; `seriatim verify {file}` names them");
        return Err(CliFailure::Refused(problem));
    }
    let link = |from: &Path, to: &Path| fs::hard_link(from, to);
    let old_file = there.map(|there| keep_old(there, link)).transpose()?;
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
    // A store does not know where its messages' workflows and positions were read.
    remark(
        "start it with definitions whose key and position are those of that day, or its messages and new ones are placed apart",
    );
    Ok(true)
}

/// A copy on its way; one that does not get to its place leaves nothing behind.
struct PartialCopy(PathBuf);

impl PartialCopy {
    /// Copies the backup to a path where only a restore that was ended may have left something, which goes.
    ///
    /// # Errors
    /// Of the file system; a refusal when the backup itself is there, perhaps the only whole copy that a restore has left.
    fn of(backup: &Path, part: PathBuf) -> Result<PartialCopy, CliFailure> {
        let identity = |path: &Path| fs::metadata(path).map(|about| (about.dev(), about.ino()));
        let source = identity(backup).map_err(|error| named(backup, &error))?;
        if identity(&part).is_ok_and(|there| there == source) {
            let part = part.display();
            let problem = format!(
                "restore: the copy of it would be made as {part}, which it is itself: give it another name first"
            );
            return Err(CliFailure::Refused(problem));
        }
        match fs::remove_file(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(named(&part, &error).into()),
            _ => {}
        }
        let copied = PartialCopy(part);
        copy(backup, &copied.0)?;
        Ok(copied)
    }
}

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

/// Copies a file to where none is.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from).map_err(|error| named(from, &error))?;
    let made = private().create_new(true).open(to);
    let mut target = made.map_err(|error| named(to, &error))?;
    io::copy(&mut source, &mut target).map_err(|error| named(to, &error))?;
    target.sync_all().map_err(|error| named(to, &error))
}

/// Keeps the file that is there under a name beside it which nobody uses: at no moment is there none of its own name. Where a file cannot
/// have two names, as `link` says, it is copied.
fn keep_old(place: &Path, link: impl Fn(&Path, &Path) -> io::Result<()>) -> Result<PathBuf, CliFailure> {
    for number in 1..=1_000 {
        let old_file = beside(place, &format!(".replaced-{number}"));
        if fs::symlink_metadata(&old_file).is_ok() {
            continue;
        }
        if link(place, &old_file).is_err()
            && let Err(error) = copy(place, &old_file)
        {
            // What there is of it would only take room, where there is not enough.
            if error.kind() != io::ErrorKind::AlreadyExists {
                drop(fs::remove_file(&old_file));
            }
            return Err(error.into());
        }
        sync_folder_of(place).map_err(|error| named(place, &error))?;
        return Ok(old_file);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_stays_under_its_name_where_a_file_cannot_have_two() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join(FILE);
        fs::write(&place, "before").unwrap();
        let unlinkable = |_: &Path, _: &Path| Err(io::Error::from(io::ErrorKind::Unsupported));
        for number in 1..=2 {
            let old_file = keep_old(&place, unlinkable).unwrap();
            assert!(old_file.ends_with(format!("{FILE}.replaced-{number}")), "{}", old_file.display());
            assert_eq!(fs::read(&old_file).unwrap(), b"before");
            assert_eq!(fs::read(&place).unwrap(), b"before", "at no moment is there none");
        }
    }
}
