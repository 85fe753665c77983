//! From arguments to an exit code.

use std::process::ExitCode;

use clap::Parser;

use crate::cli::arguments::Arguments;
use crate::cli::arguments::Demo;
use crate::cli::arguments::Verb;
use crate::cli::demo_git;

/// Exit code: a promise was broken.
const BROKEN: u8 = 1;
/// Exit code: it could not run.
const CANNOT_RUN: u8 = 3;

/// Does what the command line says.
pub(crate) fn run() -> ExitCode {
    let outcome = match Arguments::parse().verb {
        Verb::Demo(Demo::Git(arguments)) => demo_git::run(arguments),
        Verb::Demo(Demo::GitEngine(arguments)) => demo_git::run_engine(&arguments),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(BROKEN),
        Err(error) => {
            eprintln!("seriatim: failed to {error}");
            ExitCode::from(CANNOT_RUN)
        }
    }
}
