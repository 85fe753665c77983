//! A run in a process of its own, so that its memory and CPU time are its own.

use std::path::Path;
use std::process::Command;
use std::process::Stdio;

use crate::bench::contender::Contender;
use crate::bench::error::BenchError;
use crate::bench::folder::Folder;
use crate::bench::measure::measure;
use crate::bench::outcome::BenchOutcome;
use crate::bench::plan::BenchPlan;
use crate::bench::progress::BenchProgress;

/// Exit code of a run whose contender broke a promise.
const BROKEN: i32 = 1;

/// Starts this program again with `arguments`, for one run; `None` when that broke a promise, and has said so.
pub(crate) fn run_apart(set_up: impl FnOnce(&mut Command)) -> Result<Option<BenchOutcome>, BenchError> {
    let program = std::env::current_exe().map_err(BenchError::system("find this program"))?;
    let mut command = Command::new(program);
    set_up(&mut command);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(BenchError::system("start a process for the run"))?;
    match output.status.code() {
        Some(0) => {
            let outcome = serde_json::from_slice(&output.stdout);
            outcome.map(Some).map_err(BenchError::system("understand the process of the run"))
        }
        Some(BROKEN) => Ok(None),
        _ => Err(BenchError::system("end a run; its output is above")(output.status.to_string())),
    }
}

/// The run itself, in the process that was started for it: says what it came to; false when a promise was broken.
pub(crate) fn run_here<C: Contender>(plan: &BenchPlan, dir: Option<&Path>) -> Result<bool, BenchError> {
    let folder = Folder::make(dir)?;
    let runtime = tokio::runtime::Runtime::new().map_err(BenchError::system("start the runtime"))?;
    match runtime.block_on(measure::<C>(plan, folder.path(), &BenchProgress::new())) {
        Ok(outcome) => {
            println!("{}", outcome.to_json());
            Ok(true)
        }
        Err(error @ BenchError::Broken(_)) => {
            eprintln!("{}: {error}", C::NAME);
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
