//! One replay under way: the engine's process, which is killed and started again.

use std::io::BufRead;
use std::io::BufReader;
use std::path::Path;
use std::process::Child;
use std::process::ChildStdin;
use std::process::ChildStdout;
use std::process::Command;
use std::process::Stdio;

use crate::demo::replay::error::ReplayError;
use crate::demo::replay::plan::NodePlan;
use crate::demo::replay::plan::ReplayPlan;
use crate::demo::replay::progress::ReplayOutcome;
use crate::demo::replay::progress::ReplayProgress;
use crate::demo::replay::story::Story;

/// One replay under way.
pub(crate) struct Supervision<'a> {
    pub(crate) plan: &'a ReplayPlan,
    pub(crate) head: &'a str,
    pub(crate) data: &'a Path,
    pub(crate) changes: u64,
    pub(crate) crashes: u32,
    pub(crate) deferred_max: u64,
}

impl Supervision<'_> {
    /// Runs it to its end.
    pub(crate) fn run(&mut self, story: &mut Story) -> Result<ReplayOutcome, ReplayError> {
        loop {
            let mut process = self.start(None)?;
            if let Some(outcome) = self.follow(&mut process, story)? {
                return Ok(outcome);
            }
        }
    }

    /// Starts the engine's process, which may be a node.
    pub(crate) fn start(&self, node: Option<&NodePlan>) -> Result<EngineProcess, ReplayError> {
        let program = std::env::current_exe().map_err(ReplayError::system("find this program"))?;
        let mut command = Command::new(program);
        command
            .args(["demo", "git-engine"])
            .arg(&self.plan.repository)
            .args(["--head", self.head])
            .arg("--data")
            .arg(self.data)
            .args(["--failures", &self.plan.failures.to_string()])
            .args(["--seed", &self.plan.seed.to_string()])
            .args(["--mode", self.plan.mode]);
        if let Some(NodePlan { name, nats, feeds }) = node {
            command.args(["--node", name, "--nats", nats]).args(feeds.then_some("--feeds"));
        }
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(ReplayError::system("start the engine's process"))?;
        let stdout = child.stdout.take().expect("its stdout was asked for");
        let stdin = child.stdin.take();
        Ok(EngineProcess { child, lines: Some(ProgressLines(BufReader::new(stdout))), _stdin: stdin })
    }

    /// Notes how far it is.
    pub(crate) fn note(&mut self, applied: u64, deferred: u64, story: &mut Story) {
        self.deferred_max = self.deferred_max.max(deferred);
        story.go_on(applied);
    }

    /// Whether the next kill is due.
    pub(crate) fn is_crash_due(&self, applied: u64) -> bool {
        self.crashes < self.plan.crashes && applied >= self.next_crash()
    }

    /// Follows a process until it is done or was killed.
    fn follow(
        &mut self,
        process: &mut EngineProcess,
        story: &mut Story,
    ) -> Result<Option<ReplayOutcome>, ReplayError> {
        let mut lines = process.lines();
        while let Some(progress) = lines.next()? {
            match progress {
                ReplayProgress::Done(outcome) => {
                    process.end()?;
                    return Ok(Some(outcome));
                }
                ReplayProgress::Going { applied, deferred } => {
                    self.note(applied, deferred, story);
                    if self.is_crash_due(applied) {
                        process.kill()?;
                        self.crashes += 1;
                        story.report_crash(self.crashes, applied);
                        return Ok(None);
                    }
                }
            }
        }
        Err(ReplayError::EngineEnded(process.end()?))
    }

    /// After how many applied changes the next kill is due: the kills are spread evenly.
    fn next_crash(&self) -> u64 {
        let parts = u64::from(self.plan.crashes) + 1;
        self.changes * u64::from(self.crashes + 1) / parts
    }
}

/// The engine's process. Dropped, it is killed: it must not outlive its supervisor's interest.
pub(crate) struct EngineProcess {
    child: Child,
    /// What it says, until somebody listens.
    lines: Option<ProgressLines>,
    /// Held open as long as the process may live: it ends itself when this breaks.
    _stdin: Option<ChildStdin>,
}

/// What an engine's process says.
pub(crate) struct ProgressLines(BufReader<ChildStdout>);

impl ProgressLines {
    /// What it says next; `None` when it has ended.
    pub(crate) fn next(&mut self) -> Result<Option<ReplayProgress>, ReplayError> {
        let mut line = String::new();
        let read = self.0.read_line(&mut line);
        match read.map_err(ReplayError::system("read the output of the engine's process"))? {
            0 => Ok(None),
            _ => match serde_json::from_str(&line) {
                Ok(progress) => Ok(Some(progress)),
                Err(error) => Err(ReplayError::system("understand the engine's process")(error.into())),
            },
        }
    }
}

impl EngineProcess {
    /// What it says; asked for once.
    pub(crate) fn lines(&mut self) -> ProgressLines {
        self.lines.take().expect("one listens to a process")
    }

    /// Kills it with SIGKILL and waits until it is gone.
    pub(crate) fn kill(&mut self) -> Result<(), ReplayError> {
        self.child.kill().map_err(ReplayError::system("kill the engine's process"))?;
        self.child.wait().map(drop).map_err(ReplayError::system("wait for the engine's process"))
    }

    /// Waits until it has ended by itself, and says how.
    pub(crate) fn end(&mut self) -> Result<String, ReplayError> {
        let status = self.child.wait().map_err(ReplayError::system("wait for the engine's process"))?;
        Ok(status.to_string())
    }
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
