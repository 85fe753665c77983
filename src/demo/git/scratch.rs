//! Repositories for tests, made by git itself with fixed names and dates.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;

use tempfile::TempDir;

/// A repository in a folder that disappears with it. Its branch is `main`.
pub(crate) struct Scratch {
    folder: TempDir,
}

/// A commit to be made.
pub(crate) struct NewCommit {
    branch: &'static str,
    from: Option<&'static str>,
    merging: Option<&'static str>,
    author_time: i64,
    edits: Vec<String>,
}

impl NewCommit {
    /// A commit on top of `main`, or its root.
    pub(crate) fn at(author_time: i64) -> NewCommit {
        NewCommit { branch: "main", from: None, merging: None, author_time, edits: Vec::new() }
    }

    /// Puts the commit on another branch.
    pub(crate) fn on(mut self, branch: &'static str) -> NewCommit {
        self.branch = branch;
        self
    }

    /// Begins the branch at another one, or continues one of a former import.
    pub(crate) fn from(mut self, branch: &'static str) -> NewCommit {
        self.from = Some(branch);
        self
    }

    /// Makes the commit a merge with a second parent.
    pub(crate) fn merging(mut self, branch: &'static str) -> NewCommit {
        self.merging = Some(branch);
        self
    }

    /// Writes a file.
    pub(crate) fn file(self, path: impl AsRef<[u8]>, content: &str) -> NewCommit {
        self.node("100644", path, content)
    }

    /// Writes a file, an executable or a symbolic link.
    pub(crate) fn node(mut self, mode: &str, path: impl AsRef<[u8]>, content: &str) -> NewCommit {
        let (path, length) = (quote(path.as_ref()), content.len());
        self.edits.push(format!("M {mode} inline {path}\ndata {length}\n{content}\n"));
        self
    }

    /// Points a submodule to a commit.
    pub(crate) fn submodule(mut self, path: &str, commit: &str) -> NewCommit {
        self.edits.push(format!("M 160000 {commit} {path}\n"));
        self
    }

    /// Deletes a path.
    pub(crate) fn delete(mut self, path: impl AsRef<[u8]>) -> NewCommit {
        self.edits.push(format!("D {}\n", quote(path.as_ref())));
        self
    }

    /// Writes the commit for `git fast-import`.
    fn to_stream(&self, stream: &mut String) {
        let NewCommit { branch, author_time, .. } = self;
        let _ = writeln!(stream, "commit refs/heads/{branch}");
        let _ = writeln!(stream, "author Ada <ada@example.org> {author_time} +0100");
        let _ = writeln!(stream, "committer Bob <bob@example.org> 4000000000 -0300\ndata 0");
        for (word, branch) in [("from", self.from), ("merge", self.merging)] {
            if let Some(branch) = branch {
                // Only with `^0` is it the branch as stored, and not the one that this stream is making.
                let stored = if branch == self.branch { "^0" } else { "" };
                let _ = writeln!(stream, "{word} refs/heads/{branch}{stored}");
            }
        }
        stream.push_str(&self.edits.concat());
        stream.push('\n');
    }
}

impl Scratch {
    /// An empty repository with a work tree.
    pub(crate) fn new() -> Scratch {
        Scratch::init(&[])
    }

    /// An empty repository made with further options.
    pub(crate) fn init(options: &[&str]) -> Scratch {
        let scratch = Scratch { folder: tempfile::tempdir().unwrap() };
        scratch.git(&[&["init", "--quiet", "--initial-branch=main"], options].concat());
        scratch
    }

    /// A repository with these commits, the first of which is the root.
    pub(crate) fn with(commits: &[NewCommit]) -> Scratch {
        let scratch = Scratch::new();
        scratch.import(commits);
        scratch
    }

    /// The folder of the repository.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Adds commits.
    pub(crate) fn import(&self, commits: &[NewCommit]) {
        let mut stream = String::new();
        for commit in commits {
            commit.to_stream(&mut stream);
        }
        let mut command = self.command(&["fast-import", "--quiet", "--date-format=raw-permissive"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(stream.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{stream}");
    }

    /// Runs git in the repository and returns what it prints.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// A git command that reads nobody's settings.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.arg("-C").arg(self.path()).args(arguments);
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            command.env_remove(name);
        }
        for (name, value) in
            [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_ALLOW_PROTOCOL", "file")]
        {
            command.env(name, value);
        }
        command
    }
}

/// Quotes any path for the import stream, with octal escapes.
fn quote(path: &[u8]) -> String {
    let escaped: String = path.iter().map(|byte| format!("\\{byte:03o}")).collect();
    format!("\"{escaped}\"")
}
