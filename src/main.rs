//! The `seriatim` command: arguments in, exit code out.

#![forbid(unsafe_code)]

mod bench;
mod cli;
mod demo;

fn main() -> std::process::ExitCode {
    cli::run()
}
