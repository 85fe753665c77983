//! `seriatim redrive`: dead letters go back, one or many.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use seriatim::Clock;
use seriatim::SystemClock;
use seriatim::api::BodyFields;
use seriatim::api::RedriveRequest;
use seriatim::api::RedrivenWord;
use seriatim::api::WireTime;
use seriatim::api::views::DeadLetterEntry;
use seriatim::delivery::EDITED;
use seriatim::remote::Remote;

use crate::cli::arguments::operate::RedriveArguments;
use crate::cli::arguments::target::TargetArgument;
use crate::cli::confirm::Pass;
use crate::cli::confirm::confirm_unless_interrupted;
use crate::cli::connect::connect;
use crate::cli::dlq::DeadLetters;
use crate::cli::dlq::matches;
use crate::cli::failure::CliFailure;
use crate::cli::failure::TROUBLE_STATUS;
use crate::cli::interrupt::Interrupt;
use crate::cli::interrupt::check_counted;
use crate::cli::interrupt::check_finished;
use crate::cli::out::Stdout;
use crate::cli::out::remark;
use crate::cli::progress::Progress;
use crate::cli::send::body;
use crate::cli::word::counted;

/// Puts one dead letter back, those of a workflow, or all that match.
pub(crate) async fn run(arguments: RedriveArguments) -> Result<bool, CliFailure> {
    let remote = connect(&arguments.daemon)?;
    let out = Stdout::of_work(arguments.daemon.json);
    match &arguments.target {
        TargetArgument::Message(..) if !arguments.many.is_empty() => {
            let problem = "--all and filters go with QUEUE or QUEUE/WORKFLOW";
            Err(CliFailure::Argument(format!("redrive {}: {problem}", arguments.target)))
        }
        TargetArgument::Message(queue, number) => one(&remote, &out, &arguments, queue, *number).await,
        TargetArgument::Queue(queue) if !arguments.many.all => {
            let problem = "name a dead letter as QUEUE#NUMBER, a workflow as QUEUE/WORKFLOW, or add --all";
            Err(CliFailure::Argument(format!("redrive {queue}: {problem}")))
        }
        target if arguments.position.is_some() => {
            Err(CliFailure::Argument(format!("redrive {target}: --position goes with QUEUE#NUMBER")))
        }
        target if arguments.body.is_some() => {
            Err(CliFailure::Argument(format!("redrive {target}: --body goes with QUEUE#NUMBER")))
        }
        _ => many(&remote, &out, &arguments).await,
    }
}

async fn one(
    remote: &Remote,
    out: &Stdout,
    arguments: &RedriveArguments,
    queue: &str,
    number: u64,
) -> Result<bool, CliFailure> {
    let failed = || CliFailure::to(format!("redrive {queue}#{number}"));
    let outcome = remote.redrive(queue, number, &edit_of(arguments)?).await.map_err(failed())?;
    out.json(&outcome)?;
    out.say(match (outcome.redriven, outcome.dry_run) {
        (RedrivenWord::InPlace, false) => format!("{queue}#{number} is back in its own place"),
        (RedrivenWord::AsNew, false) => {
            format!("{queue}#{number} is back as the new message {queue}#{}", outcome.sequence_number)
        }
        (RedrivenWord::InPlace, true) => {
            format!("{queue}#{number} would come back in its own place (a dry run: nothing was changed)")
        }
        (RedrivenWord::AsNew, true) => {
            format!("{queue}#{number} would come back as a new message (a dry run: nothing was changed)")
        }
    })?;
    Ok(true)
}

fn redrive_of(arguments: &RedriveArguments, dry_run: bool) -> RedriveRequest {
    let (position, reason) = (arguments.position, arguments.reason.clone());
    RedriveRequest { position, reason, dry_run, ..RedriveRequest::default() }
}

/// The same, with the body that the arguments say.
fn edit_of(arguments: &RedriveArguments) -> Result<RedriveRequest, CliFailure> {
    let redrive = redrive_of(arguments, arguments.operator.dry_run);
    let Some(given) = &arguments.body else { return Ok(redrive) };
    let shown = BodyFields::show(&body(Some(given))?.into(), None);
    // No body at all would be the old one.
    let body_text = shown.body_text.or_else(|| shown.body_base64.is_none().then(String::new));
    Ok(RedriveRequest { body_text, body_base64: shown.body_base64, ..redrive })
}

/// What became of many.
#[derive(Default, Serialize)]
struct RedriveSummary {
    verb: &'static str,
    dry_run: bool,
    matched: u64,
    done: u64,
    refused: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

impl RedriveSummary {
    fn describe(&self) -> String {
        let RedriveSummary { matched, done, refused, .. } = self;
        if !self.dry_run {
            return format!("{done} redriven, {refused} refused");
        }
        let matched = counted(*matched, "dead letter");
        format!("{matched} found, {done} would be redriven, {refused} refused; nothing was changed")
    }

    /// Says how far it came, when it cannot go on.
    fn remark_how_far(&self) {
        remark(match self.dry_run {
            true => self.describe(),
            false => format!("{}; the same again does the rest", self.describe()),
        });
    }
}

async fn many(remote: &Remote, out: &Stdout, arguments: &RedriveArguments) -> Result<bool, CliFailure> {
    let (pass, interrupt) = (Pass::of(&arguments.operator), Interrupt::listen());
    if !pass.is_dry_run() && !arguments.operator.yes {
        let mut would = over_all(remote, out, arguments, Pass::Count, &interrupt).await?;
        check_counted(would.after.as_deref())?;
        if would.done == 0 {
            let is_refused = would.refused > 0;
            if is_refused {
                would = over_all(remote, out, arguments, Pass::Try, &interrupt).await?;
                check_counted(would.after.as_deref())?;
            }
            out.json(&would)?;
            out.say(would.describe())?;
            return Ok(!is_refused);
        }
        let question = format!("redrive {} of {}?", counted(would.done, "dead letter"), arguments.target);
        confirm_unless_interrupted(&arguments.operator, question, &interrupt).await?;
    }
    let summary = over_all(remote, out, arguments, pass, &interrupt).await?;
    out.json(&summary)?;
    out.say(summary.describe())?;
    check_finished(summary.after.as_deref())?;
    Ok(summary.refused == 0)
}

async fn over_all(
    remote: &Remote,
    out: &Stdout,
    arguments: &RedriveArguments,
    pass: Pass,
    interrupt: &Interrupt,
) -> Result<RedriveSummary, CliFailure> {
    let dry_run = pass.is_dry_run();
    let queue = arguments.target.queue();
    let progress = Progress::new("dead letters");
    let mut summary = RedriveSummary { verb: "redrive", dry_run, ..RedriveSummary::default() };
    let mut dead_letters = DeadLetters::new(remote, queue, arguments.many.dead_letter_reason.as_deref());
    dead_letters.after.clone_from(&arguments.many.after);
    let redrive = redrive_of(arguments, dry_run);
    // What fails again meanwhile is a new dead letter, and not meant.
    let started = started(remote).await?;
    while let Some(page) = dead_letters.next().await.inspect_err(|_| summary.remark_how_far())? {
        for dead_letter in page
            .iter()
            .filter(|dead_letter| dead_letter.dead_letter.at <= started && is_meant(dead_letter, arguments))
        {
            summary.matched += 1;
            match remote.redrive(queue, dead_letter.sequence_number, &redrive).await {
                Ok(_) => summary.done += 1,
                Err(error) => {
                    let number = dead_letter.sequence_number;
                    let Some(problem) = error.problem().filter(|problem| problem.status < TROUBLE_STATUS)
                    else {
                        summary.remark_how_far();
                        return Err(CliFailure::to(format!("redrive {queue}#{number}"))(error));
                    };
                    summary.refused += 1;
                    if pass.names_refused() {
                        remark(format!("{queue}#{number}: {} ({})", problem.detail, problem.code));
                        out.json(&json!({ "sequence_number": number, "error": problem }))?;
                    }
                }
            }
            progress.show(summary.matched);
        }
        if interrupt.came() {
            summary.after.clone_from(&dead_letters.after);
            break;
        }
    }
    progress.end();
    Ok(summary)
}

/// What the daemon's clock says now, or ours if it does not say; up to a second later, as it is said in seconds.
async fn started(remote: &Remote) -> Result<WireTime, CliFailure> {
    let clock = remote.clock().await.map_err(CliFailure::to("ask the daemon for its time"))?;
    let now = clock.map_or_else(|| SystemClock::default().now(), |clock| clock.0);
    Ok(WireTime(now + Duration::from_secs(1)))
}

fn is_meant(dead_letter: &DeadLetterEntry, arguments: &RedriveArguments) -> bool {
    let id = dead_letter.workflow_id.as_deref();
    let is_of_workflow = match &arguments.target {
        TargetArgument::Workflow(workflow) => id == Some(&workflow.workflow_id),
        _ => true,
    };
    // What became of an original was put back already.
    let is_original = dead_letter.dead_letter.reason == EDITED && arguments.many.dead_letter_reason.is_none();
    let prefix = arguments.many.prefix.as_deref();
    let begins_so = prefix.is_none_or(|prefix| id.is_some_and(|id| id.starts_with(prefix)));
    is_of_workflow && !is_original && begins_so && matches(dead_letter, arguments.many.error.as_deref())
}
