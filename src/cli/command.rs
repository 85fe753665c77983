//! From arguments to an exit code.

use std::process::ExitCode;

use clap::Parser;

use crate::cli::arguments::demo::Demo;
use crate::cli::arguments::verb::Arguments;
use crate::cli::arguments::verb::Verb;
use crate::cli::audit;
use crate::cli::backup;
use crate::cli::bench;
use crate::cli::blocked;
use crate::cli::check;
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
use crate::cli::failure::Failure;
use crate::cli::gap;
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
fn run_verb(verb: Verb) -> Result<bool, Failure> {
    match verb {
        Verb::Run(arguments) => serve::run(&arguments),
        Verb::Dev(arguments) => serve::dev(&arguments),
        Verb::Send(arguments) => connect::run(send::run(arguments)),
        Verb::Cancel(arguments) => connect::run(schedule::cancel(arguments)),
        Verb::Reschedule(arguments) => connect::run(schedule::reschedule(arguments)),
        Verb::Receive(arguments) => connect::run(receive::run(arguments)),
        Verb::Settle(arguments) => connect::run(settle::run(arguments)),
        Verb::Queues(arguments) => connect::run(queues::run(arguments)),
        Verb::Topics(arguments) => connect::run(topics::run(arguments)),
        Verb::Blocked(arguments) => connect::run(blocked::run(arguments)),
        Verb::Show(arguments) => connect::run(show::run(arguments)),
        Verb::Top(arguments) => connect::run(top::run(arguments)),
        Verb::Tail(arguments) => connect::run(tail::run(arguments)),
        Verb::Retry(arguments) => connect::run(operate::retry(arguments)),
        Verb::Skip(arguments) => connect::run(operate::skip(arguments)),
        Verb::Hold(arguments) => connect::run(operate::hold(arguments)),
        Verb::Resume(arguments) => connect::run(operate::resume(arguments)),
        Verb::Unlock(arguments) => connect::run(operate::unlock(arguments)),
        Verb::Purge(arguments) => connect::run(operate::purge(arguments)),
        Verb::Redrive(arguments) => connect::run(redrive::run(arguments)),
        Verb::Dlq(arguments) => connect::run(dlq::run(arguments)),
        Verb::Gap(arguments) => connect::run(gap::run(arguments)),
        Verb::Cron(arguments) => connect::run(cron::run(arguments)),
        Verb::Definitions(arguments) => connect::run(definitions::run(arguments)),
        Verb::Audit(arguments) => connect::run(audit::run(arguments)),
        Verb::Backup(arguments) => connect::run(backup::run(arguments)),
        Verb::Export(arguments) => connect::run(export::export(arguments)),
        Verb::Import(arguments) => connect::run(export::import(arguments)),
        Verb::Doctor(arguments) => connect::run(doctor::run(arguments)),
        Verb::Restore(arguments) => restore::run(&arguments),
        Verb::Check(arguments) => check::run(&arguments),
        Verb::Schema => check::schema(),
        Verb::Completions(arguments) => completions::run(&arguments),
        Verb::Demo(Demo::Git(arguments)) => Ok(demo_git::run(arguments)?),
        Verb::Demo(Demo::GitEngine(arguments)) => Ok(demo_git::run_engine(&arguments)?),
        Verb::Verify(arguments) => Ok(verify::run(&arguments)?),
        Verb::Compact(arguments) => compact::run(&arguments),
        Verb::Bench(arguments) => Ok(bench::run(&arguments)?),
        Verb::BenchRun(arguments) => Ok(bench::run_one(&arguments)?),
    }
}
