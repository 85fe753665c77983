//! A program to run: which file it is, where, and in which environment.

use std::ffi::OsStr;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use tokio::process::Command;

use crate::handlers::group::ProcessGroup;
use crate::handlers::shortage::is_shortage;
use crate::handlers::variables::CHILD;
use crate::handlers::variables::STORE;
use crate::handlers::variables::Variables;

/// A program with its arguments and the folder it runs in. Nothing of a message is ever an argument.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) argv: Vec<String>,
    pub(crate) cwd: PathBuf,
}

/// Why a program was not started.
#[derive(Debug)]
pub(crate) struct StartError {
    /// In one line, with its name.
    pub(crate) why: String,
    /// Whether the daemon lacks something for it, so that no message is to blame.
    pub(crate) is_shortage: bool,
}

impl Program {
    /// Its name, for people.
    pub(crate) fn name(&self) -> &str {
        self.argv.first().map(String::as_str).unwrap_or_default()
    }

    /// Starts it with three pipes, in a group of its own, with exactly these variables.
    ///
    /// # Errors
    /// Says in one line which program could not be started, and why.
    pub(crate) fn start(&self, mut variables: Variables) -> Result<ProcessGroup, StartError> {
        let name = self.name();
        let failed = |why: String| StartError { why: format!("start {name:?}: {why}"), is_shortage: false };
        if !self.cwd.is_dir() {
            return Err(failed(format!("its folder {} is not there", self.cwd.display())));
        }
        // Looked up here, because a search by the child's own PATH would need a fork of the whole daemon.
        let file = self.file(name, variables.get(OsStr::new("PATH"))).map_err(failed)?;
        let mut command = Command::new(file);
        command.arg0(name).args(self.argv.iter().skip(1)).current_dir(&self.cwd);
        let mark = mark(&variables);
        variables.insert(OsString::from(CHILD), OsString::from(&mark));
        command.env_clear().envs(variables);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        ProcessGroup::start(&mut command, mark).map_err(|error| {
            let is_shortage = is_shortage(&error);
            StartError { is_shortage, ..failed(error.to_string()) }
        })
    }

    fn file(&self, name: &str, path: Option<&OsString>) -> Result<PathBuf, String> {
        if name.is_empty() {
            return Err("it has no name".to_owned());
        }
        if name.contains('/') {
            let file = self.cwd.join(name);
            return is_executable(&file).map(|()| file).map_err(|error| error.to_string());
        }
        let mut found = Err("there is no such program in PATH".to_owned());
        let folders = path.into_iter().flat_map(std::env::split_paths);
        for folder in folders.filter(|folder| folder.is_absolute()) {
            let file = folder.join(name);
            match is_executable(&file) {
                Ok(()) => return Ok(file),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    found = Err(format!("{} is not executable", file.display()));
                }
                _ => {}
            }
        }
        found
    }
}

/// What only this child of the store carries: those of a daemon before this one are dead.
fn mark(variables: &Variables) -> String {
    static CHILDREN: AtomicU64 = AtomicU64::new(1);
    let store = variables.get(OsStr::new(STORE)).map(|id| id.to_string_lossy()).unwrap_or_default();
    format!("{store}#{}", CHILDREN.fetch_add(1, Ordering::Relaxed))
}

fn is_executable(file: &Path) -> io::Result<()> {
    let about = file.metadata()?;
    match about.is_file() && about.permissions().mode() & 0o111 != 0 {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not an executable file")),
    }
}
