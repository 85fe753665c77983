//! From arguments to an exit code.

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::arguments::Arguments;
use crate::cli::arguments::Demo;
use crate::cli::arguments::Verb;
use crate::cli::bench;
use crate::cli::demo_git;
use crate::cli::verify;

/// Exit code: a promise was broken, or a file is damaged.
const BROKEN: u8 = 1;
/// Exit code: it could not run.
const CANNOT_RUN: u8 = 3;

/// Does what the command line says.
pub(crate) fn run() -> ExitCode {
    match run_verb(Arguments::parse().verb) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(BROKEN),
        Err(error) => {
            eprintln!("seriatim: failed to {error}");
            ExitCode::from(CANNOT_RUN)
        }
    }
}

/// True when every promise was kept.
fn run_verb(verb: Verb) -> Result<bool, Box<dyn Error>> {
    Ok(match verb {
        Verb::Demo(Demo::Git(arguments)) => demo_git::run(arguments)?,
        Verb::Demo(Demo::GitEngine(arguments)) => demo_git::run_engine(&arguments)?,
        Verb::Verify(arguments) => verify::run(&arguments)?,
        Verb::Bench(arguments) => bench::run(&arguments)?,
        Verb::BenchRun(arguments) => bench::run_one(&arguments)?,
    })
}
