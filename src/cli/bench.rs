//! `seriatim bench`: each workload in a process of its own, so that its memory and CPU time are its own.

use std::process::Command;
use std::process::Stdio;

use crate::bench::BenchError;
use crate::bench::Embedded;
use crate::bench::Folder;
use crate::bench::Outcome;
use crate::bench::Plan;
use crate::bench::Progress;
use crate::bench::Workload;
use crate::bench::measure;
use crate::cli::arguments::BenchArguments;
use crate::cli::arguments::BenchRunArguments;
use crate::cli::bench_table;

/// Runs workloads one after the other; true when every promise was kept.
pub(crate) fn run(arguments: &BenchArguments) -> Result<bool, BenchError> {
    let workloads = match &arguments.workloads[..] {
        [] => Workload::all(),
        some => some,
    };
    if !arguments.json {
        println!("{}", bench_table::heading());
    }
    for workload in workloads {
        let Some(line) = run_apart(*workload, arguments)? else { return Ok(false) };
        if arguments.json {
            println!("{line}");
            continue;
        }
        let outcome =
            serde_json::from_str(&line).map_err(BenchError::system("understand the workload's process"))?;
        println!("{}", bench_table::row(&outcome));
    }
    Ok(true)
}

/// Runs a workload in a process of its own; the line it says, or `None` when a promise was broken.
fn run_apart(workload: Workload, arguments: &BenchArguments) -> Result<Option<String>, BenchError> {
    let program = std::env::current_exe().map_err(BenchError::system("find this program"))?;
    let mut command = Command::new(program);
    command.args(["bench-run", workload.name()]);
    if let Some(messages) = arguments.messages {
        command.args(["--messages", &messages.to_string()]);
    }
    if let Some(dir) = &arguments.dir {
        command.arg("--dir").arg(dir);
    }
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(BenchError::system("start the workload's process"))?;
    match output.status.code() {
        Some(0) => Ok(Some(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())),
        Some(1) => Ok(None),
        _ => {
            let what = format!("run {}; what it said stands above", workload.name());
            Err(BenchError::system(what)(output.status.to_string()))
        }
    }
}

/// The process of one workload.
pub(crate) fn run_one(arguments: &BenchRunArguments) -> Result<bool, BenchError> {
    let outcome = measured(arguments);
    match outcome {
        Ok(outcome) => {
            let line = serde_json::to_string(&outcome).map_err(BenchError::system("say what came out"))?;
            println!("{line}");
            Ok(true)
        }
        Err(error @ BenchError::Broken(_)) => {
            eprintln!("seriatim: failed to {error}");
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn measured(arguments: &BenchRunArguments) -> Result<Outcome, BenchError> {
    let plan = Plan::new(arguments.workload, arguments.messages);
    let folder = Folder::make(arguments.dir.as_deref())?;
    let runtime = tokio::runtime::Runtime::new().map_err(BenchError::system("start the runtime"))?;
    runtime.block_on(measure::<Embedded>(&plan, folder.path(), &Progress::new()))
}
