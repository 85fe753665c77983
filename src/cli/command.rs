//! From arguments to an exit code.

use std::process::ExitCode;

use clap::Parser;

use crate::cli::arguments::demo::Demo;
use crate::cli::arguments::verb::Arguments;
use crate::cli::arguments::verb::CliCommand;
use crate::cli::audit;
use crate::cli::backup;
use crate::cli::bench;
use crate::cli::blocked;
use crate::cli::check;
use crate::cli::cluster;
use crate::cli::compact;
use crate::cli::completions;
use crate::cli::connect;
use crate::cli::cron;
use crate::cli::definitions;
use crate::cli::demo_git;
use crate::cli::dlq;
use crate::cli::doctor;
use crate::cli::export;
use crate::cli::failure::BROKEN;
use crate::cli::failure::CliFailure;
use crate::cli::gap;
use crate::cli::health;
use crate::cli::operate;
use crate::cli::out::remark;
use crate::cli::queues;
use crate::cli::receive;
use crate::cli::redrive;
use crate::cli::restore;
use crate::cli::schedule;
use crate::cli::send;
use crate::cli::serve;
use crate::cli::settle;
use crate::cli::show;
use crate::cli::tail;
use crate::cli::top;
use crate::cli::topics;
use crate::cli::verify;

/// Does what the command line says.
pub(crate) fn run() -> ExitCode {
    seriatim::store::quiet_caught_panics();
    match run_verb(Arguments::parse().verb) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(BROKEN),
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            remark(format!("seriatim: {failure}"));
            ExitCode::from(failure.exit_code())
        }
    }
}

/// True when every promise was kept.
fn run_verb(verb: CliCommand) -> Result<bool, CliFailure> {
    match verb {
        CliCommand::Run(arguments) => serve::run(&arguments),
        CliCommand::Dev(arguments) => serve::dev(&arguments),
        CliCommand::Send(arguments) => connect::run(send::run(arguments)),
        CliCommand::Cancel(arguments) => connect::run(schedule::cancel(arguments)),
        CliCommand::Reschedule(arguments) => connect::run(schedule::reschedule(arguments)),
        CliCommand::Receive(arguments) => connect::run(receive::run(arguments)),
        CliCommand::Settle(arguments) => connect::run(settle::run(arguments)),
        CliCommand::Queues(arguments) => connect::run(queues::run(arguments)),
        CliCommand::Topics(arguments) => connect::run(topics::run(arguments)),
        CliCommand::Blocked(arguments) => connect::run(blocked::run(arguments)),
        CliCommand::Show(arguments) => connect::run(show::run(arguments)),
        CliCommand::Top(arguments) => connect::run(top::run(arguments)),
        CliCommand::Tail(arguments) => connect::run(tail::run(arguments)),
        CliCommand::Retry(arguments) => connect::run(operate::retry(arguments)),
        CliCommand::Skip(arguments) => connect::run(operate::skip(arguments)),
        CliCommand::Hold(arguments) => connect::run(operate::hold(arguments)),
        CliCommand::Resume(arguments) => connect::run(operate::resume(arguments)),
        CliCommand::Unlock(arguments) => connect::run(operate::unlock(arguments)),
        CliCommand::Purge(arguments) => connect::run(operate::purge(arguments)),
        CliCommand::Redrive(arguments) => connect::run(redrive::run(arguments)),
        CliCommand::Dlq(arguments) => connect::run(dlq::run(arguments)),
        CliCommand::Gap(arguments) => connect::run(gap::run(arguments)),
        CliCommand::Cron(arguments) => connect::run(cron::run(arguments)),
        CliCommand::Definitions(arguments) => connect::run(definitions::run(arguments)),
        CliCommand::Cluster(arguments) => connect::run(cluster::run(arguments)),
        CliCommand::Audit(arguments) => connect::run(audit::run(arguments)),
        CliCommand::Backup(arguments) => connect::run(backup::run(arguments)),
        CliCommand::Export(arguments) => connect::run(export::export(arguments)),
        CliCommand::Import(arguments) => connect::run(export::import(arguments)),
        CliCommand::Doctor(arguments) => connect::run(doctor::run(arguments)),
        CliCommand::Health(arguments) => connect::run(health::run(arguments)),
        CliCommand::Restore(arguments) => restore::run(&arguments),
        CliCommand::Check(arguments) => check::run(&arguments),
        CliCommand::Schema => check::schema(),
        CliCommand::Completions(arguments) => completions::run(&arguments),
        CliCommand::Demo(Demo::Git(arguments)) => demo_git::run(arguments),
        CliCommand::Demo(Demo::GitEngine(arguments)) => Ok(demo_git::run_engine(&arguments)?),
        CliCommand::Verify(arguments) => verify::run(&arguments),
        CliCommand::Compact(arguments) => compact::run(&arguments),
        CliCommand::Bench(arguments) => bench::run(&arguments),
        CliCommand::BenchRun(arguments) => Ok(bench::run_one(&arguments)?),
    }
}
