//! Repositories made for one test, and the binary run on them.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use serde_json::Value;

/// A repository in a temporary folder, written commit by commit through `git fast-import`.
pub(crate) struct Scratch {
    folder: tempfile::TempDir,
    stream: Vec<u8>,
    commits: u64,
}

impl Scratch {
    pub(crate) fn new() -> Scratch {
        let scratch = Scratch {
            folder: tempfile::tempdir().expect("a temporary folder"),
            stream: Vec::new(),
            commits: 0,
        };
        scratch.git(&["init", "-q", "-b", "main"]);
        scratch
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    /// A path beside the repository.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Adds a commit on the mainline, written at `author_time`, that makes the given changes.
    pub(crate) fn commit(&mut self, author_time: u64, changes: &[(&str, &str)]) {
        self.commits += 1;
        let committed = 2_000_000_000 + self.commits;
        let header = format!(
            "commit refs/heads/main\nauthor A <a@example.org> {author_time} +0000\n\
             committer A <a@example.org> {committed} +0000\ndata 1\nx\n"
        );
        self.stream.extend(header.as_bytes());
        for (path, content) in changes {
            let change = match content.strip_prefix("link:") {
                _ if content.is_empty() => format!("D {path}\n"),
                Some(target) => format!("M 120000 inline {path}\ndata {}\n{target}\n", target.len()),
                None if content.starts_with("commit:") => format!("M 160000 {} {path}\n", &content[7..]),
                None => format!("M 100644 inline {path}\ndata {}\n{content}\n", content.len()),
            };
            self.stream.extend(change.as_bytes());
        }
    }

    /// Writes what was committed.
    pub(crate) fn write(&self) {
        let mut import = self.command(&["fast-import", "--quiet", "--force"]);
        let mut child = import.stdin(Stdio::piped()).spawn().expect("git runs");
        child.stdin.take().expect("asked for").write_all(&self.stream).expect("git reads");
        assert!(child.wait().expect("git ends").success());
    }

    pub(crate) fn git(&self, arguments: &[&str]) {
        std::fs::create_dir_all(self.path()).expect("a folder");
        let output = self.command(arguments).output().expect("git runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.arg("-C").arg(self.path()).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
        command
    }
}

/// A repository in which many changes were written in another order than they were merged.
pub(crate) fn shuffled(commits: u64) -> Scratch {
    let mut scratch = Scratch::new();
    for commit in 0..commits {
        let author_time = 1_000_000_000 + 10 * commit - if commit % 7 == 3 { 95 } else { 0 };
        let path = format!("dir/file{}", commit % 5);
        scratch.commit(author_time, &[(&path, &format!("content {commit}")), ("all", &commit.to_string())]);
    }
    scratch.write();
    scratch
}

/// Runs `seriatim demo git` on a repository.
pub(crate) fn demo(repository: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_seriatim"));
    command.args(["demo", "git"]).arg(repository).args(arguments).output().expect("the binary runs")
}

/// Runs it with `--json` and reads the last line of stdout.
pub(crate) fn demo_json(repository: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = demo(repository, &[&["--json"], arguments].concat());
    let stdout = String::from_utf8(output.stdout).expect("text");
    let last = stdout.lines().last().unwrap_or_default();
    let json = serde_json::from_str(last);
    let complaint = String::from_utf8_lossy(&output.stderr);
    (output.status.code(), json.unwrap_or_else(|_| panic!("{stdout}\n{complaint}")))
}
