//! `seriatim doctor`: one line for each check, and what to do.

use serde::Serialize;
use seriatim::api::DefinitionPage;
use seriatim::api::plural::size;
use seriatim::api::views::ClockStepView;
use seriatim::api::views::StatusView;
use seriatim::remote::Remote;
use seriatim::remote::RemoteError;
use seriatim::remote::TLS_IS_SPOKEN;
use seriatim::remote::WRONG_CERTIFICATE;

use crate::cli::arguments::daemon::DaemonArguments;
use crate::cli::blocked;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::failure::unless_cut_off;
use crate::cli::limits;
use crate::cli::moment::LocalTime;
use crate::cli::moment::span;
use crate::cli::out::Stdout;
use crate::cli::out::printable;
use crate::cli::queues;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckResult {
    Ok,
    Warn,
    Fail,
}

/// A check, what it found, and what to do about it.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    verdict: CheckResult,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, found: impl Into<String>) -> Finding {
        Finding { check, verdict: CheckResult::Ok, found: found.into(), remedy: None }
    }

    fn warn(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { check, verdict: CheckResult::Warn, found: found.into(), remedy: Some(remedy.into()) }
    }

    fn fail(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { verdict: CheckResult::Fail, ..Finding::warn(check, found, remedy) }
    }

    fn describe(&self) -> String {
        let verdict = match self.verdict {
            CheckResult::Ok => "ok  ",
            CheckResult::Warn => "WARN",
            CheckResult::Fail => "FAIL",
        };
        let remedy = self.remedy.as_deref().map(|remedy| format!(" -> {remedy}")).unwrap_or_default();
        printable(&format!("{verdict} {}: {}{remedy}", self.check, self.found))
    }
}

/// Checks a daemon; true when nothing has failed.
pub(crate) async fn run(arguments: DaemonArguments) -> Result<bool, CliFailure> {
    let remote = connect(&arguments)?;
    let out = Stdout::new(arguments.json);
    let status = remote.status().await;
    if let Err(error @ (RemoteError::Unreachable { .. } | RemoteError::Malformed { .. })) = status {
        say(&out, &Finding::fail("reachable", error.to_string(), what_reaches(&error.to_string())))?;
        return Err(CliFailure::to("check the daemon")(error));
    }
    let mut findings = match &status {
        Ok(status) => of_status(&remote, status, &LocalTime::here()),
        Err(error) => vec![
            Finding::ok("reachable", remote.url()),
            Finding { verdict: CheckResult::Fail, ..unknown("status", error) },
        ],
    };
    findings.push(ready(&remote).await);
    findings.extend(clock(&remote).await);
    findings.push(definitions(&remote).await);
    findings.push(workflows(&remote).await);
    findings.push(dead_letters(&remote).await);
    unless_cut_off(findings.iter().try_for_each(|finding| say(&out, finding)))?;
    Ok(findings.iter().all(|finding| finding.verdict != CheckResult::Fail))
}

/// What helps where a daemon is not reached: one whose certificate is wrong runs already.
fn what_reaches(error: &str) -> &'static str {
    match error {
        error if error.contains(WRONG_CERTIFICATE) => {
            "mend its certificate, or name with --ca-file a file with who signed it"
        }
        error if error.contains(TLS_IS_SPOKEN) => "say https:// in --url",
        _ => "start it, or say where it is with --url",
    }
}

/// A check that the daemon did not answer, and what helps: only a refusal of the key is mended by another key.
fn unknown(check: &'static str, error: &RemoteError) -> Finding {
    let found = format!("not known: {error}");
    match error.problem().map(|problem| (problem.code.as_str(), problem.status)) {
        Some(("stopped", _)) => Finding::warn(
            check,
            "not known: the engine has stopped",
            "see to its fault, and start the daemon again",
        ),
        Some((_, 401 | 403)) => Finding::warn(check, found, "give a key that may: --key-file, SERIATIM_KEY"),
        _ => Finding::warn(check, found, "see the daemon's log"),
    }
}

fn say(out: &Stdout, finding: &Finding) -> Result<(), CliFailure> {
    out.json(finding)?;
    Ok(out.say(finding.describe())?)
}

fn of_status(remote: &Remote, status: &StatusView, present: &LocalTime) -> Vec<Finding> {
    let own = env!("CARGO_PKG_VERSION");
    let version = match status.version == own {
        true => Finding::ok("version", own),
        false => Finding::warn(
            "version",
            format!("the daemon is {}, this command {own}", status.version),
            "use the same version of both",
        ),
    };
    let since = format!("{}, up since {}", remote.url(), present.full(status.started_at));
    let mut findings = vec![Finding::ok("reachable", since), version];
    findings.extend(status.clock_step.as_ref().map(|step| clock_step(step, present)));
    findings.extend((status.state == "full").then(|| {
        let free = status.storage_free_bytes.unwrap_or_default() >> 20;
        let found =
            format!("{free} MiB are free: sends, schedules and definitions are refused, all else goes on");
        Finding::fail("disk", found, "free some room or enlarge it; no restart is needed")
    }));
    findings.extend(status.fault.iter().map(|fault| {
        let remedy = "see to the disk and the file; the daemon exits, and has to be started again";
        Finding::fail("engine", fault, remedy)
    }));
    findings.extend(status.file_bytes.map(|bytes| {
        let file = status.file.as_deref().unwrap_or("its file");
        Finding::ok("store", format!("{file} has {}", size(bytes)))
    }));
    findings
}

fn clock_step(step: &ClockStepView, present: &LocalTime) -> Finding {
    let (expected, shown) = (step.expected.0, step.shown.0);
    let (direction, size) = match shown > expected {
        true => ("forward", shown.since(expected)),
        false => ("back", expected.since(shown)),
    };
    let times = step.forward + step.back;
    let found = format!(
        "the machine's clock was last set {direction} by {}, to {}; it was set {} in all",
        span(size),
        present.full(step.shown),
        if times == 1 { "once".to_owned() } else { format!("{times} times") },
    );
    Finding::warn(
        "clock steps",
        found,
        "keep the machine's time with a time service; delays and locks are not affected",
    )
}

async fn clock(remote: &Remote) -> Option<Finding> {
    let now = remote.clock().await.ok()??;
    Some(match LocalTime::here().apart(now) {
        apart if apart <= limits::CLOCKS_APART => Finding::ok("clock", "as ours, to a few seconds"),
        apart => Finding::warn(
            "clock",
            format!("the daemon's is {} from ours", span(apart)),
            "see that both machines keep their time",
        ),
    })
}

async fn workflows(remote: &Remote) -> Finding {
    match blocked::first(remote, None, None, limits::PAGE).await {
        Ok((rows, _)) if rows.is_empty() => Finding::ok("workflows", "none is blocked"),
        Ok((rows, after)) => {
            let more = if after.is_some() { "more than " } else { "" };
            let do_not = if rows.len() == 1 { "does not" } else { "do not" };
            let found = format!("{more}{} {do_not} get on", rows.len());
            Finding::warn("workflows", found, "seriatim blocked")
        }
        Err(error) => unknown("workflows", &error),
    }
}

async fn dead_letters(remote: &Remote) -> Finding {
    match queues::all(remote).await {
        Ok(queues) => match queues.iter().map(|queue| queue.counts.dead_lettered).sum::<u64>() {
            0 => Finding::ok("dead letters", "none"),
            dead_letters => Finding::warn("dead letters", dead_letters.to_string(), "seriatim dlq"),
        },
        Err(CliFailure::Remote { error, .. }) => unknown("dead letters", &error),
        Err(failure) => Finding::warn("dead letters", failure.to_string(), "see the daemon's log"),
    }
}

async fn ready(remote: &Remote) -> Finding {
    match remote.ready().await {
        Ok(()) => Finding::ok("ready", "it takes work"),
        Err(error) if error.problem().is_some_and(|problem| problem.code == "stopped") => {
            let remedy = "see to the disk and the file; the daemon exits, and has to be started again";
            Finding::fail("ready", error.to_string(), remedy)
        }
        Err(error) => Finding::fail("ready", error.to_string(), "see the daemon's log"),
    }
}

async fn definitions(remote: &Remote) -> Finding {
    let DefinitionPage { definitions, problem } = match remote.definitions().await {
        Ok(page) => page,
        Err(error) => return unknown("definitions", &error),
    };
    let of_one = definitions.iter().find_map(|definition| {
        let error = definition.problem.as_ref()?;
        Some(format!("{}: {error}", definition.file))
    });
    let of_source = definitions.iter().find_map(|definition| {
        let error = definition.source.as_ref()?.problem.as_ref()?;
        Some(format!("{}: {error}", definition.queue))
    });
    let wrong = problem.or(of_one);
    let paused = definitions.iter().filter(|definition| definition.paused).count();
    match wrong {
        Some(wrong) => {
            Finding::fail("definitions", wrong, "mend the file, then: seriatim definitions reload")
        }
        None if of_source.is_some() => Finding::fail(
            "definitions",
            of_source.unwrap_or_default(),
            "mend what it names; copying goes on by itself",
        ),
        None if paused > 0 => Finding::warn(
            "definitions",
            format!("{paused} {} paused", if paused == 1 { "is" } else { "are" }),
            "seriatim definitions resume QUEUE",
        ),
        None => Finding::ok("definitions", format!("{} loaded", definitions.len())),
    }
}

#[cfg(test)]
mod tests {
    use seriatim::api::Problem;

    use super::*;

    #[test]
    fn a_daemon_that_speaks_tls_is_not_said_to_have_to_be_started() {
        let start = what_reaches("connection refused");
        assert!(start.starts_with("start it"), "{start}");
        let mended =
            what_reaches(&format!("cannot reach the daemon at https://a: {WRONG_CERTIFICATE}: Expired"));
        assert!(mended.contains("certificate") && !mended.contains("start it"), "{mended}");
        let asked =
            what_reaches(&format!("cannot reach the daemon at http://a: invalid HTTP; {TLS_IS_SPOKEN}"));
        assert_eq!(asked, "say https:// in --url");
    }

    #[test]
    fn a_key_is_asked_for_only_where_one_is_missing() {
        let described = |code: &str, status: u16| {
            let problem = Problem { status, ..Problem::new(code, "why") };
            unknown("workflows", &RemoteError::Problem(Box::new(problem))).describe()
        };
        assert!(described("forbidden", 403).contains("--key-file"));
        let stopped = described("stopped", 503);
        assert!(!stopped.contains("key") && stopped.contains("the engine has stopped"), "{stopped}");
        assert!(!described("busy", 503).contains("key"));
    }
}
