//! The command line.

mod arguments;
mod command;
mod demo_git;

pub(crate) use crate::cli::command::run;
