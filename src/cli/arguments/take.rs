//! The arguments of the verbs that take messages and settle them.

use clap::Args;
use clap::Subcommand;
use seriatim::api::WireDuration;
use seriatim::api::WireTime;

use crate::cli::arguments::daemon::DaemonArguments;

#[derive(Debug, Args)]
pub(crate) struct ReceiveArguments {
    /// The queue.
    pub(crate) queue: String,
    /// How many messages at most.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) max: u32,
    /// How long to wait for the first one: 30s, 1 min.
    #[arg(long)]
    pub(crate) wait: Option<WireDuration>,
    /// Takes messages, and completes each once it is printed. Without it, and without --keep, messages are only looked
    /// at and stay where they are.
    #[arg(long)]
    pub(crate) complete: bool,
    /// Takes messages and keeps them locked, for `seriatim settle`; the lock runs out by itself.
    #[arg(long, conflicts_with = "complete")]
    pub(crate) keep: bool,
    /// Takes consecutive messages of one workflow, instead of one message each of several.
    #[arg(long)]
    pub(crate) run: bool,
    /// Takes dead letters of the queue, in order of reason and number, instead of its messages.
    #[arg(long, conflicts_with = "run")]
    pub(crate) dead_letters: bool,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

#[derive(Debug, Args)]
pub(crate) struct SettleArguments {
    /// The queue.
    pub(crate) queue: String,
    /// The delivery, as `receive --keep` has printed it.
    pub(crate) delivery: String,
    #[command(subcommand)]
    pub(crate) how: SettlementArgument,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

/// How a delivery is settled.
#[derive(Debug, Subcommand)]
pub(crate) enum SettlementArgument {
    /// It is done.
    Complete,
    /// It failed; it is tried again in its place.
    Abandon {
        /// When it is tried again; without it, as the queue's backoff says.
        #[arg(long)]
        retry_after: Option<WireDuration>,
        /// Why.
        #[arg(long)]
        reason: Option<String>,
    },
    /// It is set aside; the workflow goes on without it.
    Defer {
        /// When it comes back by itself.
        #[arg(long)]
        until: Option<WireTime>,
    },
    /// It is moved aside for good.
    DeadLetter {
        /// Why, in a word or two; dead letters are listed by it.
        #[arg(long)]
        reason: String,
        /// What else there is to say.
        #[arg(long)]
        description: Option<String>,
    },
    /// It is given back unstarted, and not counted.
    Release,
    /// Its lock lasts longer.
    Renew,
}
