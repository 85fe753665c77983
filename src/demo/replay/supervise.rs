//! The supervisor: starts the engine's process, kills it on the way, starts it again, and judges the end.

use std::io::BufRead;
use std::io::BufReader;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::ChildStdin;
use std::process::ChildStdout;
use std::process::Command;
use std::process::Stdio;

use seriatim::Clock;
use seriatim::SystemClock;

use crate::demo::git::PathChange;
use crate::demo::git::Repository;
use crate::demo::git::arrival_order;
use crate::demo::git::check_workflow_ids;
use crate::demo::git::count_early;
use crate::demo::replay::engine_process::FILE_NAME;
use crate::demo::replay::error::ReplayError;
use crate::demo::replay::plan::Handling;
use crate::demo::replay::plan::ReplayPlan;
use crate::demo::replay::progress::ReplayOutcome;
use crate::demo::replay::progress::ReplayProgress;
use crate::demo::replay::report::Report;
use crate::demo::replay::story::Story;

/// Replays a history; true when every promise was kept.
pub(crate) fn replay(plan: &ReplayPlan) -> Result<bool, ReplayError> {
    let repository = Repository::open(&plan.repository)?;
    let changes = repository.changes()?;
    check_workflow_ids(changes.iter().map(|change| &change.path[..]))?;
    let early = count_early(&changes, &order_of(plan, &changes));
    let clock = SystemClock::default();
    let data = DataFolder::prepare(plan.data.as_deref())?;
    let mut story = Story::begin(plan, changes.len(), early.messages);
    let mut supervision = Supervision {
        plan,
        head: repository.head(),
        data: &data.path,
        changes: changes.len() as u64,
        crashes: 0,
        deferred_max: 0,
    };
    let outcome = supervision.run(&mut story)?;
    let report = Report::new(
        &outcome,
        changes.len() as u64,
        early.messages as u64,
        supervision.deferred_max,
        supervision.crashes,
        clock.elapsed(),
    );
    story.end(&report);
    Ok(report.is_right())
}

/// The order in which the messages arrive.
fn order_of(plan: &ReplayPlan, changes: &[PathChange]) -> Vec<usize> {
    match plan.handling {
        Handling::RetryAtBack => (0..changes.len()).collect(),
        Handling::Ordered | Handling::AsTheyArrive => arrival_order(changes),
    }
}

/// One replay under way.
struct Supervision<'a> {
    plan: &'a ReplayPlan,
    head: &'a str,
    data: &'a Path,
    changes: u64,
    crashes: u32,
    deferred_max: u64,
}

impl Supervision<'_> {
    fn run(&mut self, story: &mut Story) -> Result<ReplayOutcome, ReplayError> {
        loop {
            let mut process = self.start()?;
            if let Some(outcome) = self.follow(&mut process, story)? {
                return Ok(outcome);
            }
        }
    }

    fn start(&self) -> Result<EngineProcess, ReplayError> {
        let program = std::env::current_exe().map_err(ReplayError::system("find this program"))?;
        let child = Command::new(program)
            .args(["demo", "git-engine"])
            .arg(&self.plan.repository)
            .args(["--head", self.head])
            .arg("--data")
            .arg(self.data)
            .args(["--failures", &self.plan.failures.to_string()])
            .args(["--seed", &self.plan.seed.to_string()])
            .args(["--mode", self.plan.mode])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.map_err(ReplayError::system("start the engine's process"))?;
        let stdout = child.stdout.take().expect("its stdout was asked for");
        let stdin = child.stdin.take();
        Ok(EngineProcess { child, lines: BufReader::new(stdout), _stdin: stdin })
    }

    /// Follows a process until it is done or was killed.
    fn follow(
        &mut self,
        process: &mut EngineProcess,
        story: &mut Story,
    ) -> Result<Option<ReplayOutcome>, ReplayError> {
        while let Some(progress) = process.next()? {
            match progress {
                ReplayProgress::Done(outcome) => {
                    process.end()?;
                    return Ok(Some(outcome));
                }
                ReplayProgress::Going { applied, deferred } => {
                    self.deferred_max = self.deferred_max.max(deferred);
                    story.go_on(applied);
                    if self.crashes < self.plan.crashes && applied >= self.next_crash() {
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
struct EngineProcess {
    child: Child,
    lines: BufReader<ChildStdout>,
    /// Held open as long as the process may live: it ends itself when this breaks.
    _stdin: Option<ChildStdin>,
}

impl EngineProcess {
    /// What it says next; `None` when it has ended.
    fn next(&mut self) -> Result<Option<ReplayProgress>, ReplayError> {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line);
        match read.map_err(ReplayError::system("read the output of the engine's process"))? {
            0 => Ok(None),
            _ => match serde_json::from_str(&line) {
                Ok(progress) => Ok(Some(progress)),
                Err(error) => Err(ReplayError::system("understand the engine's process")(error.into())),
            },
        }
    }

    /// Kills it with SIGKILL and waits until it is gone.
    fn kill(&mut self) -> Result<(), ReplayError> {
        self.child.kill().map_err(ReplayError::system("kill the engine's process"))?;
        self.child.wait().map(drop).map_err(ReplayError::system("wait for the engine's process"))
    }

    /// Waits until it has ended by itself, and says how.
    fn end(&mut self) -> Result<String, ReplayError> {
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

/// The folder of the engine's file; a temporary one is removed in the end.
struct DataFolder {
    path: PathBuf,
    temporary: bool,
}

impl DataFolder {
    fn prepare(folder: Option<&Path>) -> Result<DataFolder, ReplayError> {
        let path = match folder {
            Some(path) => path.to_owned(),
            None => {
                let now = SystemClock::default().now().as_millis();
                std::env::temp_dir().join(format!("seriatim-demo-{}-{now}", std::process::id()))
            }
        };
        let making = format!("make the folder {}", path.display());
        std::fs::create_dir_all(&path).map_err(ReplayError::system(making))?;
        if path.join(FILE_NAME).exists() {
            return Err(ReplayError::DataInUse(path));
        }
        Ok(DataFolder { path, temporary: folder.is_none() })
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        if self.temporary {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
