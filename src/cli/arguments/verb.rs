//! The verbs.

use clap::Args;
use clap::Parser;
use clap::Subcommand;
use clap_complete::Shell;

use crate::cli::arguments::bench::BenchArguments;
use crate::cli::arguments::bench::BenchRunArguments;
use crate::cli::arguments::daemon::DaemonArguments;
use crate::cli::arguments::define::CheckArguments;
use crate::cli::arguments::demo::Demo;
use crate::cli::arguments::exit_codes::ALL_CODES;
use crate::cli::arguments::exit_codes::CHECK_CODES;
use crate::cli::arguments::exit_codes::CLUSTER_CODES;
use crate::cli::arguments::exit_codes::DOCTOR_CODES;
use crate::cli::arguments::exit_codes::EXIT_CODES;
use crate::cli::arguments::exit_codes::SERVE_CODES;
use crate::cli::arguments::exit_codes::VERIFY_CODES;
use crate::cli::arguments::keep::BackupArguments;
use crate::cli::arguments::keep::CompactArguments;
use crate::cli::arguments::keep::ExportArguments;
use crate::cli::arguments::keep::ImportArguments;
use crate::cli::arguments::keep::RestoreArguments;
use crate::cli::arguments::keep::VerifyArguments;
use crate::cli::arguments::look::AuditArguments;
use crate::cli::arguments::look::BlockedArguments;
use crate::cli::arguments::look::CronArguments;
use crate::cli::arguments::look::DefinitionsArguments;
use crate::cli::arguments::look::ShowArguments;
use crate::cli::arguments::look::TailArguments;
use crate::cli::arguments::operate::ClusterVerbArguments;
use crate::cli::arguments::operate::DlqArguments;
use crate::cli::arguments::operate::GapArguments;
use crate::cli::arguments::operate::HoldArguments;
use crate::cli::arguments::operate::PurgeArguments;
use crate::cli::arguments::operate::RedriveArguments;
use crate::cli::arguments::operate::ResumeArguments;
use crate::cli::arguments::operate::RetryArguments;
use crate::cli::arguments::operate::SkipArguments;
use crate::cli::arguments::operate::UnlockArguments;
use crate::cli::arguments::send::CancelArguments;
use crate::cli::arguments::send::RescheduleArguments;
use crate::cli::arguments::send::SendArguments;
use crate::cli::arguments::serve::DevArguments;
use crate::cli::arguments::serve::RunArguments;
use crate::cli::arguments::take::ReceiveArguments;
use crate::cli::arguments::take::SettleArguments;

/// Messages of one workflow, one at a time, in order, even when they arrive shuffled, fail, or the process dies.
#[derive(Debug, Parser)]
#[command(version, about, after_help = ALL_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: CliCommand,
}

#[derive(Debug, Subcommand)]
#[command(subcommand_help_heading = "Verbs")]
pub(crate) enum CliCommand {
    /// Run the daemon: what a folder of definitions says, until it is stopped.
    #[command(after_help = SERVE_CODES)]
    Run(RunArguments),
    /// Run a daemon on a store that is gone afterwards, with a demonstration if no definitions are given.
    #[command(after_help = SERVE_CODES)]
    Dev(DevArguments),
    /// Send a message, or many from lines of JSON.
    #[command(after_help = EXIT_CODES)]
    Send(SendArguments),
    /// Cancel a scheduled message; its place is free again, or void.
    #[command(after_help = EXIT_CODES)]
    Cancel(CancelArguments),
    /// Let a scheduled message come at another instant.
    #[command(after_help = EXIT_CODES)]
    Reschedule(RescheduleArguments),
    /// Look at the first messages of a queue, or take them.
    #[command(after_help = EXIT_CODES)]
    Receive(ReceiveArguments),
    /// Settle what `receive --keep` has taken.
    #[command(after_help = EXIT_CODES)]
    Settle(SettleArguments),
    /// List the queues with their counts.
    #[command(after_help = EXIT_CODES)]
    Queues(DaemonArguments),
    /// List the topics with their subscriptions and rules.
    #[command(after_help = EXIT_CODES)]
    Topics(DaemonArguments),
    /// Show everything that does not go on: which workflow, why, since when, and what happens next.
    #[command(after_help = EXIT_CODES)]
    Blocked(BlockedArguments),
    /// Watch the queues and what is blocked, anew each second; without a terminal, print it once.
    #[command(after_help = EXIT_CODES)]
    Top(DaemonArguments),
    /// Show a queue, the timeline of a workflow, or one message. Looking never changes anything.
    #[command(after_help = EXIT_CODES)]
    Show(ShowArguments),
    /// Print what happens, as it happens.
    #[command(after_help = EXIT_CODES)]
    Tail(TailArguments),
    /// Try the message at the head of a workflow again now.
    #[command(after_help = EXIT_CODES)]
    Retry(RetryArguments),
    /// Dead-letter the message at the head of a workflow, so that the next one is handled.
    #[command(after_help = EXIT_CODES)]
    Skip(SkipArguments),
    /// Stop offering messages of a workflow until it is resumed.
    #[command(after_help = EXIT_CODES)]
    Hold(HoldArguments),
    /// Let a held workflow go on.
    #[command(after_help = EXIT_CODES)]
    Resume(ResumeArguments),
    /// Take the lock of a workflow from its holder; what it had is offered again.
    #[command(after_help = EXIT_CODES)]
    Unlock(UnlockArguments),
    /// Put dead letters back: in their place, or as new messages.
    #[command(after_help = EXIT_CODES)]
    Redrive(RedriveArguments),
    /// List the dead letters of a queue by reason, or purge them.
    #[command(after_help = EXIT_CODES)]
    Dlq(DlqArguments),
    /// Show what is missing in a workflow, declare it void, or skip it.
    #[command(after_help = EXIT_CODES)]
    Gap(GapArguments),
    /// Remove the messages of a workflow, of many, or of a whole queue.
    #[command(after_help = EXIT_CODES)]
    Purge(PurgeArguments),
    /// Show the schedules and their next ticks.
    #[command(after_help = EXIT_CODES)]
    Cron(CronArguments),
    /// List the definitions, load them again, pause or resume their handlers.
    #[command(after_help = EXIT_CODES)]
    Definitions(DefinitionsArguments),
    /// Show who owns which partition of a cluster, drain a node, or move a partition.
    #[command(after_help = CLUSTER_CODES)]
    Cluster(ClusterVerbArguments),
    /// List what operators did.
    #[command(after_help = EXIT_CODES)]
    Audit(AuditArguments),
    /// Write a consistent copy of the running daemon's file.
    #[command(after_help = EXIT_CODES)]
    Backup(BackupArguments),
    /// Verify a backup and put it into a data folder that no daemon has open.
    #[command(after_help = EXIT_CODES)]
    Restore(RestoreArguments),
    /// Write the messages of a queue as lines of JSON.
    #[command(after_help = EXIT_CODES)]
    Export(ExportArguments),
    /// Send the messages of an export, in their workflows and positions.
    #[command(after_help = EXIT_CODES)]
    Import(ImportArguments),
    /// Check a daemon: one line for each check, and what to do.
    #[command(after_help = DOCTOR_CODES)]
    Doctor(DaemonArguments),
    /// Ask whether a daemon answers and its store works, in one request and without a key: a check for containers.
    #[command(after_help = EXIT_CODES)]
    Health(DaemonArguments),
    /// Read a folder of definitions and say every mistake, or what they declare and when their schedules tick next.
    #[command(after_help = CHECK_CODES)]
    Check(CheckArguments),
    /// Print the JSON schema of a definition, for an editor.
    Schema,
    /// Print what makes a shell complete these verbs.
    Completions(CompletionsArguments),
    /// Show what seriatim does, on data you already have.
    #[command(subcommand)]
    Demo(Demo),
    /// Read all of a file that no engine has open, without changing it, and say what is damaged.
    #[command(after_help = VERIFY_CODES)]
    Verify(VerifyArguments),
    /// Make a file that no engine has open as small as what it holds; a file does not become smaller by itself.
    #[command(after_help = EXIT_CODES)]
    Compact(CompactArguments),
    /// Measure the engine on this machine; order and one at a time are checked for every message.
    #[command(after_help = EXIT_CODES)]
    Bench(BenchArguments),
    /// The process of one workload.
    #[command(hide = true)]
    BenchRun(BenchRunArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell.
    pub(crate) shell: Shell,
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
    fn nothing_stands_in_the_help_under_a_heading_that_is_not_its_own() {
        let mut seen = 0;
        for verb in Arguments::command().get_subcommands() {
            let is_common = |id: &str| ["log_json", "dry_run", "yes", "reason"].contains(&id);
            let is_of_run = |id: &str| id == "json" && verb.get_name() == "run";
            for argument in verb.get_arguments() {
                let id = argument.get_id().as_str();
                if is_common(id) || is_of_run(id) {
                    assert_eq!(argument.get_help_heading(), None, "{}: {id}", verb.get_name());
                    seen += 1;
                }
            }
        }
        assert!(seen > 10, "only {seen} were found");
    }

    #[test]
    fn the_help_of_every_verb_that_looks_at_something_says_its_exit_codes() {
        for verb in Arguments::command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
            // What only prints what the program knows, and one whose parts say it.
            if ["schema", "completions", "demo"].contains(&verb.get_name()) {
                continue;
            }
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.starts_with("Exit codes: "), "{}: {help:?}", verb.get_name());
        }
    }

    #[test]
    fn the_help_of_what_runs_a_daemon_says_that_a_fault_ends_it_with_four() {
        let mut line = Arguments::command();
        let of_all = line.render_long_help().to_string();
        for verb in ["run", "dev"] {
            let help = line.find_subcommand_mut(verb).expect("the verb exists").render_long_help();
            assert!(help.to_string().contains("; 4 it ran, and a fault"), "{verb}: {help}");
        }
        assert!(of_all.contains("; 4, of run and dev: it ran, and a fault"), "{of_all}");
    }

    #[test]
    fn the_help_of_doctor_and_cluster_says_that_what_they_find_ends_them_with_one() {
        let mut line = Arguments::command();
        for (verb, says) in
            [("doctor", "; 1 a check has failed (FAIL)"), ("cluster", "; 1 status shows a problem")]
        {
            let help = line.find_subcommand_mut(verb).expect("the verb exists").render_long_help();
            assert!(help.to_string().contains(says), "{verb}: {help}");
        }
    }
}
