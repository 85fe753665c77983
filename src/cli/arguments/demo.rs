//! The arguments of `seriatim demo`.

use std::path::PathBuf;

use clap::Args;
use clap::Subcommand;
use clap::ValueEnum;

use crate::cli::arguments::exit_codes::EXIT_CODES;

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
    /// Replay on three nodes of a cluster with three NATS servers; each time a node and a server are killed. It needs
    /// `nats-server` on the path, or in `NATS_SERVER`.
    #[arg(long, conflicts_with_all = ["no_reorder", "retry_at_back"])]
    pub(crate) cluster: bool,
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
    /// The name of the node that the process is.
    #[arg(long)]
    pub(crate) node: Option<String>,
    /// Its NATS servers.
    #[arg(long, default_value = "")]
    pub(crate) nats: String,
    /// Whether it sends the changes.
    #[arg(long)]
    pub(crate) feeds: bool,
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
    use super::*;

    #[test]
    fn a_share_is_between_nothing_and_all() {
        assert!(parse_share("0.02").is_ok());
        for wrong in ["-0.1", "1.1", "NaN", "a"] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
    }
}
