//! The arguments of the operator's verbs.

use clap::Args;
use clap::Subcommand;
use seriatim::api;
use seriatim::api::views::BlockedCause;
use seriatim::api::views::WorkflowWord;
use seriatim::queue::HoldKind;

use crate::cli::arguments::daemon::DaemonArguments;
use crate::cli::arguments::target::Positions;
use crate::cli::arguments::target::TargetArgument;
use crate::cli::arguments::target::WorkflowTarget;
use crate::cli::word::parse_word;
use crate::cli::word::wire_word;

/// What every operator verb takes.
#[derive(Debug, Args)]
pub(crate) struct OperatorArguments {
    /// Says what would happen, and to how many, and changes nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Does not ask first.
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// Which workflows of a queue are meant, when it is not one.
#[derive(Debug, Args)]
#[command(next_help_heading = "Many at once")]
pub(crate) struct FilterArguments {
    /// Every workflow of the queue that matches the filters. Without statuses and causes, `retry` and `skip` mean those that
    /// are blocked or held, and `resume` those that are held.
    #[arg(long)]
    pub(crate) all: bool,
    /// Only those with one of these statuses: ready, locked, blocked, scheduled, waiting_for_predecessor, held, idle.
    #[arg(long, value_delimiter = ',', requires = "all", value_parser = parse_word::<WorkflowWord>)]
    pub(crate) status: Vec<WorkflowWord>,
    /// Only those whose workflow ID begins so.
    #[arg(long, requires = "all")]
    pub(crate) prefix: Option<String>,
    /// Only those that are held for one of these causes: operator, exhausted, gap, predecessor, quarantine,
    /// redriving.
    #[arg(long, value_delimiter = ',', requires = "all", value_parser = hold_kind)]
    pub(crate) hold_cause: Vec<HoldKind>,
    /// Only those whose last error, or the reason they are held for, has this text in it.
    #[arg(long, requires = "all", value_name = "TEXT")]
    pub(crate) error: Option<String>,
    /// Goes on where an interrupted run has stopped; it printed where.
    #[arg(long, requires = "all", value_name = "WHERE")]
    pub(crate) after: Option<String>,
}

/// A verb for every workflow of a queue that matches.
#[derive(Debug, Args)]
#[command(next_help_heading = "Many at once")]
pub(crate) struct BulkArguments {
    #[command(flatten)]
    pub(crate) filter: FilterArguments,
    /// Only those that do not get on for one of these causes: retry, deferred, gap, held, locked,
    /// rate_limited.
    #[arg(long, value_delimiter = ',', requires = "all", value_parser = parse_word::<BlockedCause>)]
    pub(crate) cause: Vec<BlockedCause>,
}

impl BulkArguments {
    /// Whether everything of a queue is meant.
    pub(crate) fn is_everything(&self) -> bool {
        let FilterArguments { all, status, prefix, hold_cause, error, after } = &self.filter;
        let words_are_empty = status.is_empty() && self.cause.is_empty() && hold_cause.is_empty();
        *all && words_are_empty && prefix.is_none() && error.is_none() && after.is_none()
    }
}

impl FilterArguments {
    /// Which workflows are meant when one cause of their holds is lifted, or all of them.
    pub(crate) fn held_for(mut self, cause: Option<HoldKind>) -> BulkArguments {
        if self.hold_cause.is_empty() {
            self.hold_cause.extend(cause);
        }
        BulkArguments { filter: self, cause: Vec::new() }
    }
}

/// One workflow or many, for a verb of operators.
#[derive(Debug, Args)]
pub(crate) struct WorkflowsArguments {
    /// QUEUE/WORKFLOW, or QUEUE with --all.
    pub(crate) target: TargetArgument,
    // Before what has a heading: in the help, that goes on to whatever comes behind.
    #[command(flatten)]
    pub(crate) operator: OperatorArguments,
    #[command(flatten)]
    pub(crate) bulk: BulkArguments,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

/// Every dead letter of a queue that matches.
#[derive(Debug, Args)]
#[command(next_help_heading = "Many at once")]
pub(crate) struct DeadLetterArguments {
    /// Every dead letter of the queue that matches the filters.
    #[arg(long)]
    pub(crate) all: bool,
    /// Only those whose workflow ID begins so.
    #[arg(long, requires = "all")]
    pub(crate) prefix: Option<String>,
    /// Only those that were moved aside for this reason.
    #[arg(long)]
    pub(crate) dead_letter_reason: Option<String>,
    /// Only those whose reason or description contains this text.
    #[arg(long, value_name = "TEXT")]
    pub(crate) error: Option<String>,
    /// Goes on where an interrupted run has stopped; it printed where.
    #[arg(long, value_name = "WHERE")]
    pub(crate) after: Option<String>,
}

impl DeadLetterArguments {
    /// Whether nothing is said of many.
    pub(crate) fn is_empty(&self) -> bool {
        let DeadLetterArguments { all, prefix, dead_letter_reason, error, after } = self;
        !all && [prefix, dead_letter_reason, error, after].iter().all(|given| given.is_none())
    }
}

#[derive(Debug, Args)]
pub(crate) struct RetryArguments {
    /// Why, for the audit.
    #[arg(long)]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) workflows: WorkflowsArguments,
}

#[derive(Debug, Args)]
pub(crate) struct SkipArguments {
    /// Why; it stays with the dead letter, and in the audit.
    #[arg(long)]
    pub(crate) reason: String,
    /// Only if this message is at the head: a second one skips no other.
    #[arg(long, value_name = "SEQUENCE_NUMBER", conflicts_with = "all")]
    pub(crate) message: Option<u64>,
    #[command(flatten)]
    pub(crate) workflows: WorkflowsArguments,
}

#[derive(Debug, Args)]
pub(crate) struct HoldArguments {
    /// Why; it is shown as long as the workflow is held.
    #[arg(long)]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) workflows: WorkflowsArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArguments {
    /// QUEUE/WORKFLOW, or QUEUE with --all.
    pub(crate) target: TargetArgument,
    /// Puts the workflow's dead letters back in their places first.
    #[arg(long)]
    pub(crate) redrive: bool,
    /// Lifts only this cause of the hold, instead of all: operator, exhausted, gap, predecessor, quarantine, redriving.
    #[arg(long, conflicts_with = "redrive", value_parser = hold_kind)]
    pub(crate) cause: Option<HoldKind>,
    /// Why, for the audit.
    #[arg(long)]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) operator: OperatorArguments,
    #[command(flatten)]
    pub(crate) many: FilterArguments,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

#[derive(Debug, Args)]
pub(crate) struct UnlockArguments {
    /// QUEUE/WORKFLOW.
    pub(crate) target: WorkflowTarget,
    /// Why, for the audit.
    #[arg(long)]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) operator: OperatorArguments,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

#[derive(Debug, Args)]
pub(crate) struct RedriveArguments {
    /// QUEUE#NUMBER for one dead letter, QUEUE/WORKFLOW for those of a workflow, or QUEUE with --all.
    pub(crate) target: TargetArgument,
    /// Sends it as a new message at this position, instead of to its own place.
    #[arg(long)]
    pub(crate) position: Option<u64>,
    /// Puts it back with another body: text, @FILE, or - for stdin. The original stays a dead letter, with the reason edited.
    #[arg(long, value_name = "BODY")]
    pub(crate) body: Option<String>,
    /// Why, for the audit.
    #[arg(long)]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) operator: OperatorArguments,
    #[command(flatten)]
    pub(crate) many: DeadLetterArguments,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

/// With QUEUE and --all: everything it stores, or the workflows that match.
#[derive(Debug, Args)]
pub(crate) struct PurgeArguments {
    /// Why, for the audit.
    #[arg(long)]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) workflows: WorkflowsArguments,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct DlqArguments {
    #[command(flatten)]
    pub(crate) list: DlqListArguments,
    #[command(subcommand)]
    pub(crate) what: Option<DlqVerb>,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

#[derive(Debug, Args)]
pub(crate) struct DlqListArguments {
    /// The queue; by default all queues.
    pub(crate) queue: Option<String>,
    /// Prints each of them, instead of how many there are for each reason.
    #[arg(long)]
    pub(crate) each: bool,
    /// Only those whose reason contains this text.
    #[arg(long, value_name = "TEXT")]
    pub(crate) error: Option<String>,
}

/// What is done with dead letters; without it, they are listed.
#[derive(Debug, Subcommand)]
pub(crate) enum DlqVerb {
    /// Remove all dead letters of a queue for good.
    Purge {
        /// The queue.
        queue: String,
        /// Why, for the audit.
        #[arg(long)]
        reason: String,
        #[command(flatten)]
        operator: OperatorArguments,
    },
}

#[derive(Debug, Args)]
pub(crate) struct GapArguments {
    #[command(subcommand)]
    pub(crate) what: GapVerb,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

/// What is done with a gap.
#[derive(Debug, Subcommand)]
pub(crate) enum GapVerb {
    /// Show what is missing, since when, and what waits behind it.
    Show {
        /// QUEUE/WORKFLOW.
        target: WorkflowTarget,
    },
    /// Declare positions void: nobody will send them.
    Void {
        /// QUEUE/WORKFLOW.
        target: WorkflowTarget,
        /// The positions: 19, or 19..22 with both included.
        positions: Positions,
        /// Why, for the audit.
        #[arg(long)]
        reason: String,
        #[command(flatten)]
        operator: OperatorArguments,
    },
    /// Go on with the lowest waiting position; should what is skipped come later, it becomes a dead letter.
    Skip {
        /// QUEUE/WORKFLOW.
        target: WorkflowTarget,
        /// Why, for the audit.
        #[arg(long)]
        reason: String,
        #[command(flatten)]
        operator: OperatorArguments,
    },
}

/// Reads a cause of a hold; hyphens and capitals are taken too, as in other words.
fn hold_kind(text: &str) -> Result<HoldKind, String> {
    api::hold_kind(&wire_word(text))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::Parser;

    use super::*;
    use crate::cli::arguments::verb::Arguments;

    #[test]
    fn the_help_of_every_verb_names_each_cause_of_a_hold_in_the_words_of_json() {
        for verb in ["retry", "skip", "hold", "resume", "purge"] {
            let command = Arguments::command();
            let found = command.find_subcommand(verb).expect("the verb exists");
            let causes = found.get_arguments().find(|argument| argument.get_id() == "hold_cause");
            let help = causes.and_then(|causes| causes.get_help()).expect("it has a help").to_string();
            for cause in ["operator", "exhausted", "gap", "predecessor", "quarantine", "redriving"] {
                assert!(help.contains(cause), "{verb}: {help}");
                hold_kind(cause).expect("it is a cause");
            }
            assert!(!help.contains("spent"), "{verb}: {help}");
        }
    }

    #[test]
    fn a_cause_of_a_hold_that_is_none_is_answered_with_those_that_are() {
        for flags in [["--hold-cause", "retry"], ["--cause", "gap,operator"]] {
            let line = ["seriatim", "resume", "orders", "--all"].into_iter().chain(flags);
            let said = Arguments::try_parse_from(line).unwrap_err().to_string();
            assert!(HoldKind::ALL.iter().all(|known| said.contains(known.as_str())), "{said}");
            assert!(!said.contains("spent"), "{said}");
        }
        assert_eq!(hold_kind("spent"), Ok(HoldKind::Exhausted), "scripts of an older release say so");
    }

    #[test]
    fn the_page_of_the_command_line_names_what_narrows_many_at_once() {
        let page = include_str!("../../../docs/cli.md");
        let (_, many) = page.split_once("**Many at once.**").expect("the page says it");
        let (many, _) = many.split_once("\n\n").expect("a paragraph");
        for known in HoldKind::ALL {
            assert!(many.contains(known.as_str()), "{known}: {many}");
        }
        let retry = Arguments::command().find_subcommand("retry").expect("the verb exists").clone();
        let cause = retry.get_arguments().find(|argument| argument.get_id() == "cause");
        let help = cause.and_then(|cause| cause.get_help()).expect("it has a help").to_string();
        let (_, causes) = help.split_once(": ").expect("it names them");
        for cause in causes.trim_end_matches('.').split(", ") {
            assert!(many.contains(cause), "{cause}: {many}");
        }
        assert!(help.contains("rate_limited"), "{help}");
    }
}

#[derive(Debug, Args)]
pub(crate) struct ClusterVerbArguments {
    #[command(subcommand)]
    pub(crate) what: Option<ClusterVerb>,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

/// What is done with a cluster; without it, it is shown.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterVerb {
    /// Show nodes and partitions; ends with 1 when a partition has no owner, or a node has a problem.
    Status,
    /// Have a node give its partitions to others, one after the other, and take none until it is started again.
    Drain {
        /// The node.
        node: String,
        /// Let it take partitions again.
        #[arg(long)]
        undo: bool,
    },
    /// Have a node own a partition as long as it is alive.
    Move {
        /// The partition.
        partition: u16,
        /// The node; without one, the hash decides again.
        node: Option<String>,
    },
}
