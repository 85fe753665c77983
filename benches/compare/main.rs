//! The engine and its baselines take turns at the same workloads, in one run on one machine.
//!
//! `cargo bench -p seriatim-compare --bench compare -- [WORKLOAD ...] [--quick] [--json] [--write docs/performance.md]`. Rates of different
//! runs cannot be compared, because the machine is never twice the same; so contenders alternate, each time in a
//! process of its own, and medians and ratios of neighbours are shown.

#[path = "../baseline/mod.rs"]
mod baseline;
#[allow(dead_code, unused_imports, reason = "its unit tests belong to the binary's")]
#[path = "../../src/bench/mod.rs"]
mod bench;
mod comparison;
mod document;
mod machine;
mod table;

use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use clap::ValueEnum;

use crate::baseline::Sqlite;
use crate::bench::BenchError;
use crate::bench::BenchPlan;
use crate::bench::EmbeddedEngine;
use crate::bench::Workload;
use crate::bench::run_apart;
use crate::bench::run_here;
use crate::comparison::Comparison;

/// A quick run has so many times fewer messages.
const QUICK: u64 = 20;

/// Let the engine and its baselines take turns at the same workloads.
#[derive(Clone, Debug, Parser)]
struct Arguments {
    /// What to run; everything by default.
    #[arg(value_enum, value_name = "WORKLOAD")]
    workloads: Vec<Workload>,
    /// How often each contender has its turn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// How many messages each workload sends, instead of its usual number.
    #[arg(long)]
    messages: Option<u32>,
    /// Three rounds with a twentieth of the messages: enough to see that all works, not to quote.
    #[arg(long, conflicts_with_all = ["rounds", "messages"])]
    quick: bool,
    /// Folder on the disk to measure; by default where temporary files go. What is written there is removed.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Run everything a second time with every fsync longer by so much.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    sync_delay_ms: u64,
    /// Print one line of JSON for each workload.
    #[arg(long)]
    json: bool,
    /// A document whose block of figures is replaced; only by a whole run.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workloads", "quick"])]
    write: Option<PathBuf>,
    /// The process of one turn.
    #[arg(long, hide = true)]
    turn: Option<Side>,
    /// What cargo says to a benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Who takes turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Side {
    Seriatim,
    Sqlite,
}

impl Side {
    const ALL: [Side; 2] = [Side::Seriatim, Side::Sqlite];

    fn name(self) -> &'static str {
        match self {
            Side::Seriatim => "seriatim",
            Side::Sqlite => "sqlite",
        }
    }
}

fn main() -> ExitCode {
    let mut arguments = Arguments::parse();
    if !arguments.bench {
        println!("nothing is measured: run it with `cargo bench -p seriatim-compare --bench compare`");
        return ExitCode::SUCCESS;
    }
    if arguments.quick {
        arguments.rounds = 3;
    }
    let done = match arguments.turn {
        Some(side) => take_turn(side, &arguments),
        None => compare(&arguments),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("compare: failed to {error}");
            ExitCode::from(3)
        }
    }
}

/// One turn, in its own process.
fn take_turn(side: Side, arguments: &Arguments) -> Result<bool, BenchError> {
    let workload = arguments.workloads.first().copied();
    let workload = workload.ok_or_else(|| BenchError::system("take a turn")("no workload is named"))?;
    let sync_delay = Duration::from_millis(arguments.sync_delay_ms);
    let plan = BenchPlan { sync_delay, ..BenchPlan::new(workload, arguments.messages) };
    match side {
        Side::Seriatim => run_here::<EmbeddedEngine>(&plan, arguments.dir.as_deref()),
        Side::Sqlite => run_here::<Sqlite>(&plan, arguments.dir.as_deref()),
    }
}

/// All turns; false when a promise was broken.
fn compare(arguments: &Arguments) -> Result<bool, BenchError> {
    let workloads: Vec<Workload> = match &arguments.workloads[..] {
        // The queue on SQLite has neither a purge nor a history.
        [] => {
            let is_both = |workload: &Workload| !matches!(workload, Workload::Purge | Workload::History);
            Workload::all().iter().copied().filter(is_both).collect()
        }
        some => some.to_vec(),
    };
    let delays = if arguments.sync_delay_ms == 0 { vec![0] } else { vec![0, arguments.sync_delay_ms] };
    let mut tables = Vec::new();
    for delay_ms in delays {
        let mut comparisons = Vec::new();
        for workload in &workloads {
            let Some(comparison) = alternate(*workload, delay_ms, arguments)? else { return Ok(false) };
            if arguments.json {
                println!("{}", comparison.to_json());
            }
            comparisons.push(comparison);
        }
        tables.push(table::table(&comparisons, delay_ms));
    }
    let machine = machine::describe(arguments.dir.as_deref(), arguments.rounds);
    let figures = format!("{machine}\n{}", tables.join("\n"));
    if !arguments.json {
        println!("{figures}");
    }
    if let Some(path) = &arguments.write {
        // Benchmarks are started in the folder of their package; paths are those of the repository.
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
        document::write(&path, "figures", &figures)?;
    }
    Ok(true)
}

/// Lets the contenders take turns at a workload; `None` when one broke a promise.
fn alternate(
    workload: Workload,
    delay_ms: u64,
    arguments: &Arguments,
) -> Result<Option<Comparison>, BenchError> {
    let sides = Side::ALL.into_iter();
    let mut comparison = Comparison::new(workload, delay_ms, sides.collect());
    let messages = match arguments.quick {
        true => u32::try_from(BenchPlan::new(workload, None).messages() / QUICK).ok(),
        false => arguments.messages,
    };
    for round in 1..=arguments.rounds {
        for side in comparison.sides() {
            eprintln!("{} {round}/{}: {}", workload.name(), arguments.rounds, side.name());
            let outcome = run_apart(|command| {
                command.args(["--bench", "--turn", side.name(), workload.name()]);
                command.args(["--sync-delay-ms", &delay_ms.to_string()]);
                if let Some(messages) = messages {
                    command.args(["--messages", &messages.to_string()]);
                }
                if let Some(dir) = &arguments.dir {
                    command.arg("--dir").arg(dir);
                }
            })?;
            let Some(outcome) = outcome else { return Ok(None) };
            comparison.add(side, outcome);
        }
    }
    Ok(Some(comparison))
}
