//! The `seriatim` command: arguments in, exit code out.

#![forbid(unsafe_code)]

mod bench;
mod cli;
mod demo;

/// What one thread allocates another frees, for every message: what the system brings is slow at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::run()
}
