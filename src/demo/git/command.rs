//! Runs the `git` program so that nobody's settings can change what it prints.

use std::ffi::OsString;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;
use std::thread;

use crate::demo::git::error::GitError;
use crate::demo::git::limits;

/// Variables that would lead git to another repository, as they do inside a hook, or change what it shows.
const REMOVED_VARIABLES: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ATTR_SOURCE",
    "GIT_COMMON_DIR",
    "GIT_DIFF_OPTS",
    "GIT_DIR",
    "GIT_EXTERNAL_DIFF",
    "GIT_ICASE_PATHSPECS",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// What is set instead: plain messages, no writing, no prompt, no network, and the history as it was committed.
const SET_VARIABLES: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_GRAFT_FILE", "/dev/null"),
];

/// Settings overridden for every command. The user's own files are still read: they say which folders of other
/// users git may trust.
const SETTINGS: &[&str] = &[
    "--no-pager",
    "-c",
    "advice.graftFileDeprecated=false",
    "-c",
    "color.ui=false",
    "-c",
    "log.diffMerges=first-parent",
];

/// The `git` program, asked about one folder.
#[derive(Debug)]
pub(crate) struct Git {
    program: OsString,
    path: PathBuf,
}

impl Git {
    /// Asks the program on the PATH about the folder.
    pub(crate) fn new(path: &Path) -> Git {
        Git { program: OsString::from("git"), path: path.to_path_buf() }
    }

    /// A command that is ready to run.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("-C").arg(&self.path).args(SETTINGS).args(arguments);
        command.envs(SET_VARIABLES.iter().copied());
        for name in REMOVED_VARIABLES {
            command.env_remove(name);
        }
        for (name, _) in std::env::vars_os() {
            // Traces would be mixed into the complaints.
            if name.to_string_lossy().starts_with("GIT_TRACE") {
                command.env_remove(name);
            }
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command and gives its output to `read`, which must read to the end.
    ///
    /// # Errors
    ///
    /// What `read` found wrong, or what git complained about if that explains it.
    pub(crate) fn run<T>(
        &self,
        mut command: Command,
        read: impl FnOnce(&mut dyn BufRead) -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => GitError::NotInstalled,
            _ => GitError::NotRun(error),
        })?;
        let (result, status, complaint) = converse(&mut child, read).map_err(GitError::NotRun)?;
        match result {
            Ok(value) if status.success() => Ok(value),
            // An output cut short is explained by what git complained about, if git failed by itself.
            Ok(_) | Err(GitError::CutShort) if !status.success() => Err(self.explain(status, complaint)),
            other => other,
        }
    }

    /// Runs a command that prints one short line, and returns the line.
    pub(crate) fn line(&self, arguments: &[&str]) -> Result<String, GitError> {
        self.run(self.command(arguments), |output| {
            let mut line = Vec::new();
            output.take(limits::TOKEN_BYTES_MAX as u64).read_to_end(&mut line).map_err(GitError::NotRun)?;
            let text = str::from_utf8(&line).map_err(|_| GitError::unexpected("one line of text", &line))?;
            Ok(text.trim_end().to_owned())
        })
    }

    /// Finds the error that git's complaint means. The texts are git's own, in the plain locale.
    fn explain(&self, status: ExitStatus, complaint: String) -> GitError {
        let path = self.path.clone();
        if complaint.is_empty() {
            return GitError::Silent { path, status };
        }
        if complaint.contains("not a git repository") {
            return GitError::NotARepository { path };
        }
        if complaint.contains("dubious ownership") || complaint.contains("unsafe repository") {
            return GitError::NotTrusted { path, complaint };
        }
        GitError::Refused { path, complaint }
    }
}

/// Reads both streams of a running git at once, because it would stop at a full one, and waits for its end.
fn converse<T>(
    child: &mut Child,
    read: impl FnOnce(&mut dyn BufRead) -> Result<T, GitError>,
) -> io::Result<(Result<T, GitError>, ExitStatus, String)> {
    let stdout = child.stdout.take().expect("the output of the command is piped");
    let stderr = child.stderr.take().expect("the errors of the command are piped");
    thread::scope(|scope| {
        let listener = thread::Builder::new()
            .name("git complaints".to_owned())
            .spawn_scoped(scope, move || listen(stderr))?;
        let result = read(&mut BufReader::new(stdout));
        if result.is_err() && !matches!(result, Err(GitError::CutShort)) {
            // The rest is not wanted. It may have ended already, and that is as good.
            let _ = child.kill();
        }
        let status = child.wait()?;
        let complaint = listener.join().expect("listening does not panic")?;
        Ok((result, status, complaint))
    })
}

/// Keeps the beginning of what git complains about and reads the rest away.
fn listen(mut stderr: impl Read) -> io::Result<String> {
    let mut complaint = Vec::new();
    stderr.by_ref().take(limits::COMPLAINT_BYTES_MAX).read_to_end(&mut complaint)?;
    io::copy(&mut stderr, &mut io::sink())?;
    Ok(String::from_utf8_lossy(&complaint).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::demo::git::scratch::Scratch;

    #[test]
    fn a_missing_git_is_named() {
        let git = Git { program: OsString::from("no-such-git-program"), path: PathBuf::from(".") };
        let error = git.line(&["--version"]).unwrap_err();
        assert!(error.to_string().contains("install git"), "{error}");
    }

    #[test]
    fn the_variables_of_a_hook_do_not_lead_elsewhere() {
        let command = Git::new(Path::new(".")).command(&["log"]);
        let variables: Vec<_> = command.get_envs().collect();
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            assert!(variables.contains(&(OsStr::new(name), None)), "{name}");
        }
        assert!(variables.contains(&(OsStr::new("LC_ALL"), Some(OsStr::new("C")))));
    }

    #[test]
    fn a_repository_of_another_user_is_refused_with_the_way_out() {
        let scratch = Scratch::new();
        let git = Git::new(scratch.path());
        let mut command = git.command(&["rev-parse", "--is-shallow-repository"]);
        command.env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");
        let error = git.run(command, |output| io::copy(output, &mut io::sink()).map_err(GitError::NotRun));
        let text = error.unwrap_err().to_string();
        assert!(text.contains("another user owns it"), "{text}");
        assert!(text.contains("git config --global --add safe.directory"), "{text}");
    }

    #[test]
    fn a_complaint_is_passed_on() {
        let scratch = Scratch::new();
        let error = Git::new(scratch.path()).line(&["no-such-verb"]).unwrap_err();
        assert!(error.to_string().contains("not a git command"), "{error}");
    }

    #[test]
    fn an_end_without_a_word_is_named() {
        let scratch = Scratch::new();
        let missing = ["config", "--get", "no.such"];
        let error = Git::new(scratch.path()).line(&missing).unwrap_err();
        assert!(error.to_string().contains("without a word"), "{error}");
    }

    #[test]
    fn more_complaints_than_are_kept_are_still_read() {
        let mut complaints = io::Cursor::new(vec![b'x'; 1024 * 1024]);
        let complaint = listen(&mut complaints).unwrap();
        assert_eq!(complaint.len() as u64, limits::COMPLAINT_BYTES_MAX);
        assert_eq!(complaints.position(), 1024 * 1024);
    }

    #[test]
    fn a_reader_that_gives_up_ends_git() {
        let scratch = Scratch::new();
        let git = Git::new(scratch.path());
        let answer = git.run(git.command(&["help", "--all"]), |_| Err::<(), _>(GitError::TooManyPaths));
        assert!(matches!(answer, Err(GitError::TooManyPaths)));
    }
}
