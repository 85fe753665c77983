//! The command line.

mod arguments;
mod bench;
mod bench_table;
mod command;
mod demo_git;
mod verify;

pub(crate) use crate::cli::command::run;
