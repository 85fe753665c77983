//! The arguments of the verbs that look and change nothing, and of `definitions`.

use clap::Args;
use clap::Subcommand;
use seriatim::api::views::BlockedCause;

use crate::cli::arguments::daemon::DaemonArguments;
use crate::cli::arguments::target::TargetArgument;
use crate::cli::word::parse_word;

#[derive(Debug, Args)]
pub(crate) struct BlockedArguments {
    /// Only those of this queue.
    #[arg(long)]
    pub(crate) queue: Option<String>,
    /// Only those for this cause: retry, deferred, gap, held, locked, too_large, prefetch_window, rate_limited or
    /// cannot_start; without it, all but those that are locked.
    #[arg(long, value_parser = parse_word::<BlockedCause>)]
    pub(crate) cause: Option<BlockedCause>,
    /// How many are printed at most.
    #[arg(long, default_value_t = 100, value_parser = at_least_one)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// QUEUE, QUEUE/WORKFLOW or QUEUE#NUMBER.
    pub(crate) target: TargetArgument,
    /// How many messages of a workflow are printed at most.
    #[arg(long, default_value_t = 50, value_parser = at_least_one)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

#[derive(Debug, Args)]
pub(crate) struct TailArguments {
    /// Only what happens in this queue.
    #[arg(long)]
    pub(crate) queue: Option<String>,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

#[derive(Debug, Args)]
pub(crate) struct CronArguments {
    /// Only the schedules of this queue.
    #[arg(long)]
    pub(crate) queue: Option<String>,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

#[derive(Debug, Args)]
pub(crate) struct DefinitionsArguments {
    #[command(subcommand)]
    pub(crate) what: Option<DefinitionsVerb>,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

/// What is done with definitions; without it, they are listed.
#[derive(Debug, Subcommand)]
pub(crate) enum DefinitionsVerb {
    /// List them.
    List,
    /// Load them again: all of them, or none when one is wrong.
    Reload,
    /// Stop the handlers of a queue from taking further messages; senders and other receivers go on.
    Pause {
        /// The queue.
        queue: String,
    },
    /// Let the handlers of a queue go on.
    Resume {
        /// The queue.
        queue: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AuditArguments {
    /// Goes on where an earlier page has ended; it printed where.
    #[arg(long)]
    pub(crate) after: Option<String>,
    /// How many are printed at most.
    #[arg(long, default_value_t = 100, value_parser = at_least_one)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("it must be a whole number of at least 1".to_owned()),
        Ok(number) => Ok(number),
    }
}
