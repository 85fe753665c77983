//! The store alone: its commits against a raw append of the same bodies, and against one row a message.
//!
//! `cargo bench --bench store --features store-alone [-- --rounds N --dir DIR --quick --json --write FILE --reopen N]`. Bodies of
//! 256 bytes for 10,000 workflows in no order, every commit on disk before the next begins. The three take turns.

#[path = "../../src/bench/mod.rs"]
#[allow(dead_code, unused_imports, reason = "only the raw append, its body and its folder are used")]
mod bench;
#[path = "../compare/document.rs"]
mod document;
mod reopen;
mod rows;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use clap::Parser;
use seriatim::BareStore;
use seriatim::Clock;
use seriatim::SystemClock;
use seriatim::WorkflowId;

use crate::bench::BenchError;
use crate::bench::body::BODY_LEN;
use crate::bench::folder::Folder;
use crate::bench::raw::append_all;
use crate::rows::RowAMessage;

const BATCHES: [usize; 5] = [1, 16, 128, 1_024, 8_192];

const WORKFLOWS: u64 = 10_000;

/// So many commits of a batch are measured, as far as these are not too many messages.
const COMMITS: usize = 2_000;
const MESSAGES_MAX: usize = 400_000;

/// A quick run has so many times fewer messages.
const QUICK: usize = 20;

/// Measure the store alone.
#[derive(Clone, Debug, Parser)]
struct Arguments {
    /// How often each contender has its turn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// A twentieth of the messages: enough to see that all works, not to quote.
    #[arg(long)]
    quick: bool,
    /// Folder on the disk to measure; by default where temporary files go.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print one line of JSON for each batch.
    #[arg(long)]
    json: bool,
    /// A document whose block of figures of the store is replaced.
    #[arg(long, value_name = "FILE", conflicts_with = "quick")]
    write: Option<PathBuf>,
    /// Instead, how long a file of so many messages takes to open after its process was killed.
    #[arg(long, value_name = "MESSAGES")]
    reopen: Option<usize>,
    /// The process that fills the file and dies.
    #[arg(long, hide = true, requires = "reopen")]
    fill: Option<PathBuf>,
    /// What cargo says to a benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Messages a second of the three.
#[derive(Clone, Copy, Debug)]
struct Round {
    raw: f64,
    store: f64,
    rows: f64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if !arguments.bench {
        println!("nothing is measured: run it with `cargo bench --bench store --features store-alone`");
        return ExitCode::SUCCESS;
    }
    let done = match (arguments.reopen, &arguments.fill) {
        (Some(messages), Some(path)) => reopen::fill_and_die(path, messages),
        (Some(messages), None) => measure_reopening(&arguments, messages),
        (None, _) => measure(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("store: failed to {error}");
            ExitCode::from(3)
        }
    }
}

fn measure(arguments: &Arguments) -> Result<(), BenchError> {
    let mut table = String::from(
        "| batch | raw append | store | store / raw | a row a message | store / row a message |\n\
         |---:|---:|---:|---:|---:|---:|\n",
    );
    for batch in BATCHES {
        let mut messages = (batch * COMMITS).min(MESSAGES_MAX);
        if arguments.quick {
            messages = (messages / QUICK).max(batch);
        }
        let mut rounds = Vec::new();
        for round in 1..=arguments.rounds {
            eprintln!("batches of {batch}: {round}/{}", arguments.rounds);
            rounds.push(take_turns(arguments, batch, messages)?);
        }
        table.push_str(&report(arguments, batch, &rounds));
    }
    if !arguments.json {
        println!("\n{table}");
    }
    match &arguments.write {
        Some(path) => document::write(path, "store", &table),
        None => Ok(()),
    }
}

fn measure_reopening(arguments: &Arguments, messages: usize) -> Result<(), BenchError> {
    let mut rounds = Vec::new();
    for round in 1..=arguments.rounds {
        eprintln!("a file of {messages} messages: {round}/{}", arguments.rounds);
        rounds.push(reopen::reopen(arguments.dir.as_deref(), messages)?);
    }
    let seconds = median(rounds.iter().map(|round| round.seconds).collect());
    let gigabytes = median(rounds.iter().map(|round| round.bytes as f64 / 1e9).collect());
    let per_gigabyte = seconds / gigabytes;
    match arguments.json {
        true => println!(
            "{{\"messages\":{messages},\"gigabytes\":{gigabytes:.2},\"seconds\":{seconds:.2},\
             \"seconds_per_gigabyte\":{per_gigabyte:.2}}}"
        ),
        false => println!(
            "{messages} messages, {gigabytes:.2} GB: open after {seconds:.2} s, {per_gigabyte:.2} s a GB"
        ),
    }
    Ok(())
}

fn take_turns(arguments: &Arguments, batch: usize, messages: usize) -> Result<Round, BenchError> {
    let folder = Folder::make(arguments.dir.as_deref())?;
    let appended = append_all(folder.path(), messages as u64, batch, Duration::ZERO)?;
    let raw = messages as f64 / appended.iter().sum::<Duration>().as_secs_f64();

    let mut store = BareStore::open(&folder.path().join("store.redb"))
        .map_err(|error| BenchError::system("open the store")(error))?;
    let store = rate(batch, messages, |batch| {
        store.append(batch).map_err(|error| BenchError::system("append to the store")(error))
    })?;

    let mut rows = RowAMessage::create(&folder.path().join("rows.redb"))?;
    let rows = rate(batch, messages, |batch| rows.append(batch))?;
    Ok(Round { raw, store, rows })
}

type Batch<'b> = &'b mut dyn Iterator<Item = (WorkflowId, Bytes)>;

/// How many messages a second `append` takes.
fn rate(
    batch: usize,
    messages: usize,
    mut append: impl FnMut(Batch<'_>) -> Result<(), BenchError>,
) -> Result<f64, BenchError> {
    let workflows: Vec<WorkflowId> = (0..WORKFLOWS)
        .map(|number| WorkflowId::try_from(format!("order-{number}")))
        .collect::<Result<_, _>>()
        .map_err(|error| BenchError::system("name the workflows")(error))?;
    let body = Bytes::from(vec![b'x'; BODY_LEN]);
    let mut messages_left = (0..messages as u64).map(|number| {
        // A stride that has no factor in common with their number visits all of them, in no order that a tree likes.
        let workflow = usize::try_from(number * 7_919 % WORKFLOWS).unwrap_or_default();
        (workflows[workflow].clone(), body.clone())
    });
    let clock = SystemClock::default();
    let started = clock.elapsed();
    for _ in 0..messages.div_ceil(batch) {
        append(&mut messages_left.by_ref().take(batch))?;
    }
    Ok(messages as f64 / (clock.elapsed() - started).as_secs_f64())
}

/// A line of the table; with `--json`, printed as an object instead.
fn report(arguments: &Arguments, batch: usize, rounds: &[Round]) -> String {
    let of = |value: &dyn Fn(&Round) -> f64| median(rounds.iter().map(value).collect());
    let (raw, store, rows) = (of(&|round| round.raw), of(&|round| round.store), of(&|round| round.rows));
    let to_raw = of(&|round| round.store / round.raw);
    let to_rows = of(&|round| round.store / round.rows);
    if arguments.json {
        println!(
            "{{\"batch\":{batch},\"raw_per_second\":{raw:.0},\"store_per_second\":{store:.0},\
             \"rows_per_second\":{rows:.0},\"store_to_raw\":{to_raw:.3},\"store_to_rows\":{to_rows:.2}}}"
        );
    }
    format!("| {batch} | {raw:.0} | {store:.0} | {to_raw:.2} | {rows:.0} | {to_rows:.1} |\n")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
