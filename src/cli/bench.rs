//! `seriatim bench`.

use crate::bench::BenchError;
use crate::bench::BenchPlan;
use crate::bench::EmbeddedEngine;
use crate::bench::Workload;
use crate::bench::run_apart;
use crate::bench::run_here;
use crate::cli::arguments::bench::BenchArguments;
use crate::cli::arguments::bench::BenchRunArguments;
use crate::cli::bench_table;
use crate::cli::failure::CliFailure;
use crate::cli::out::write_line;

/// Runs workloads one after the other; true when every promise was kept.
pub(crate) fn run(arguments: &BenchArguments) -> Result<bool, CliFailure> {
    let workloads = match &arguments.workloads[..] {
        [] => Workload::all(),
        some => some,
    };
    if !arguments.json {
        write_line(bench_table::heading().as_bytes())?;
    }
    for workload in workloads {
        let outcome = run_apart(|command| {
            command.args(["bench-run", workload.name()]);
            if let Some(messages) = arguments.messages {
                command.args(["--messages", &messages.to_string()]);
            }
            if let Some(dir) = &arguments.dir {
                command.arg("--dir").arg(dir);
            }
        })?;
        let Some(outcome) = outcome else { return Ok(false) };
        let line = if arguments.json { outcome.to_json() } else { bench_table::row(&outcome) };
        write_line(line.as_bytes())?;
    }
    Ok(true)
}

/// The process of one workload.
pub(crate) fn run_one(arguments: &BenchRunArguments) -> Result<bool, BenchError> {
    run_here::<EmbeddedEngine>(
        &BenchPlan::new(arguments.workload, arguments.messages),
        arguments.dir.as_deref(),
    )
}
