//! What can be said on the command line.

use std::path::PathBuf;

use clap::Args;
use clap::Parser;
use clap::Subcommand;
use clap::ValueEnum;

use crate::bench::Workload;

/// Messages of one workflow, one at a time, in order, even when they arrive shuffled, fail, or the process dies.
#[derive(Debug, Parser)]
#[command(version, about, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const EXIT_CODES: &str = "Exit codes: 0 all is well; 1 a promise was broken or a file is damaged; 2 the arguments are wrong; \
                          3 it could not run, and one line on stderr says why.";

const VERIFY_CODES: &str = "Exit codes: 0 the file is sound; 1 it is damaged; 2 the arguments are wrong; 3 it could not \
                            be looked at: it is not seriatim's, beyond recognition, or held by a process that is named.";

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Show what seriatim does, on data you already have.
    #[command(subcommand)]
    Demo(Demo),
    /// Read all of a file that no engine has open, without changing it, and say what is damaged.
    #[command(after_help = VERIFY_CODES)]
    Verify(VerifyArguments),
    /// Measure the engine on this machine; order and one at a time are checked for every message.
    #[command(after_help = EXIT_CODES)]
    Bench(BenchArguments),
    /// The process of one workload.
    #[command(hide = true)]
    BenchRun(BenchRunArguments),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Demo {
    /// Replay a git history as messages that arrive out of order, fail, and lose their process on the way.
    #[command(after_help = EXIT_CODES)]
    Git(GitArguments),
    /// The engine's process of `demo git`, to be killed.
    #[command(hide = true)]
    GitEngine(GitEngineArguments),
}

#[derive(Debug, Args)]
pub(crate) struct GitArguments {
    /// The repository; bare ones work too.
    #[arg(default_value = ".")]
    pub(crate) repository: PathBuf,
    /// Share of messages whose first attempt fails and is retried after a delay.
    #[arg(long, default_value_t = 0.02, value_parser = parse_share)]
    pub(crate) failures: f64,
    /// How often the engine's process is killed with SIGKILL on the way.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(..=1_000))]
    pub(crate) crashes: u32,
    /// Chooses which messages fail.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Folder to keep the engine's file in; by default a temporary one that is removed.
    #[arg(long)]
    pub(crate) data: Option<PathBuf>,
    /// Print the result as one line of JSON, the last on stdout.
    #[arg(long)]
    pub(crate) json: bool,
    /// Control: handle messages as they arrive, as a queue without positions does. It finds wrong predecessors.
    #[arg(long, conflicts_with = "retry_at_back")]
    pub(crate) no_reorder: bool,
    /// Control: put a failed message at the back of the queue, as an ordinary queue does. It finds wrong predecessors.
    #[arg(long)]
    pub(crate) retry_at_back: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GitEngineArguments {
    pub(crate) repository: PathBuf,
    #[arg(long)]
    pub(crate) head: String,
    #[arg(long)]
    pub(crate) data: PathBuf,
    #[arg(long)]
    pub(crate) failures: f64,
    #[arg(long)]
    pub(crate) seed: u64,
    #[arg(long)]
    pub(crate) mode: Mode,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// The file.
    pub(crate) file: PathBuf,
    /// How many damages are printed; the total always is.
    #[arg(long, default_value_t = 20)]
    pub(crate) limit: usize,
    /// Print the result as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// What to run; everything by default.
    #[arg(value_enum, value_name = "WORKLOAD")]
    pub(crate) workloads: Vec<Workload>,
    /// How many messages each workload sends, instead of its usual number.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub(crate) messages: Option<u32>,
    /// Folder on the disk to measure; by default where temporary files go. What is written there is removed.
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
    /// Print one line of JSON for each workload.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchRunArguments {
    #[arg(value_enum)]
    pub(crate) workload: Workload,
    #[arg(long)]
    pub(crate) messages: Option<u32>,
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
}

/// How the messages are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// In order by position, retries in place.
    Ordered,
    /// As they arrive.
    NoReorder,
    /// In order, but a failed message goes to the back.
    RetryAtBack,
}

impl Mode {
    /// The mode's name as an argument.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Ordered => "ordered",
            Mode::NoReorder => "no-reorder",
            Mode::RetryAtBack => "retry-at-back",
        }
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("it must be a number from 0 to 1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_share_is_between_nothing_and_all() {
        assert!(parse_share("0.02").is_ok());
        for wrong in ["-0.1", "1.1", "NaN", "a"] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
    }
}
