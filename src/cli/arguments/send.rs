//! The arguments of `seriatim send`.

use clap::Args;
use seriatim::api::WireDuration;
use seriatim::api::WireTime;

use crate::cli::arguments::daemon::DaemonArguments;
use crate::cli::arguments::keep::FeedArguments;
use crate::cli::arguments::target::MessageTarget;

#[derive(Debug, Args)]
pub(crate) struct SendArguments {
    /// The queue, or with --topic the topic.
    pub(crate) queue: String,
    /// It is a topic: every subscription that wants the message gets it, or none does.
    #[arg(long, conflicts_with = "ndjson")]
    pub(crate) topic: bool,
    /// The body: text, @FILE, or - for stdin, which is also what is read without it.
    pub(crate) body: Option<String>,
    /// Every line of the input is a message as JSON: {"workflow_id": .., "position": .., "body": ..}. Lines that are
    /// refused are named, the others are sent.
    #[arg(long)]
    pub(crate) ndjson: bool,
    #[command(flatten)]
    pub(crate) place: PlaceArguments,
    #[command(flatten)]
    pub(crate) headers: HeaderArguments,
    #[command(flatten)]
    pub(crate) feed: FeedArguments,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

/// Where a message stands.
#[derive(Debug, Args)]
pub(crate) struct PlaceArguments {
    /// The workflow it belongs to.
    #[arg(long, conflicts_with = "ndjson")]
    pub(crate) workflow: Option<String>,
    /// Its position inside the workflow.
    #[arg(long, conflicts_with = "ndjson")]
    pub(crate) position: Option<u64>,
    /// The message ID of the message it follows.
    #[arg(long, conflicts_with = "ndjson")]
    pub(crate) after: Option<String>,
    /// It is the first of an after-ordered workflow.
    #[arg(long, conflicts_with_all = ["after", "ndjson"])]
    pub(crate) first: bool,
}

/// What else belongs to a message.
#[derive(Debug, Args)]
pub(crate) struct HeaderArguments {
    /// Its ID, by which duplicates are detected.
    #[arg(long, conflicts_with = "ndjson")]
    pub(crate) message_id: Option<String>,
    /// Makes it safe to say this command again: with the same key and message, nothing is stored twice for ten minutes.
    #[arg(long, value_name = "KEY", conflicts_with = "ndjson")]
    pub(crate) idempotency_key: Option<String>,
    /// What it is about, in a word.
    #[arg(long, conflicts_with = "ndjson")]
    pub(crate) subject: Option<String>,
    /// MIME type of the body; application/json when the body is a JSON object or array.
    #[arg(long, conflicts_with = "ndjson")]
    pub(crate) content_type: Option<String>,
    /// The ID of the message or request it belongs to.
    #[arg(long, conflicts_with = "ndjson")]
    pub(crate) correlation_id: Option<String>,
    /// Where an answer is expected.
    #[arg(long, conflicts_with = "ndjson")]
    pub(crate) reply_to: Option<String>,
    /// A property; numbers, true and false are taken as such, "quoted" text as text.
    #[arg(long = "property", value_name = "NAME=VALUE", conflicts_with = "ndjson")]
    pub(crate) properties: Vec<String>,
    /// Until when it is kept back: 2027-01-31T12:00:00Z.
    #[arg(long, conflicts_with = "ndjson")]
    pub(crate) schedule_at: Option<WireTime>,
    /// How long it is kept back from now on: 30s, 5 min, 7d.
    #[arg(long, conflicts_with_all = ["ndjson", "schedule_at"])]
    pub(crate) delay: Option<WireDuration>,
    /// How long it lives: 30s, 5 min, 7d.
    #[arg(long, conflicts_with = "ndjson")]
    pub(crate) time_to_live: Option<WireDuration>,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArguments {
    /// QUEUE#NUMBER.
    pub(crate) target: MessageTarget,
    /// Declares its place void, so that what waits behind it goes on; else the place is free again, and a gap.
    #[arg(long)]
    pub(crate) void: bool,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

#[derive(Debug, Args)]
pub(crate) struct RescheduleArguments {
    /// QUEUE#NUMBER.
    pub(crate) target: MessageTarget,
    /// When it is to come: 2027-01-31T12:00:00Z; an instant that has passed makes it ready at once.
    #[arg(long)]
    pub(crate) at: WireTime,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}
