//! `seriatim doctor`: one line for each check, and what to do.

use serde::Serialize;
use seriatim::remote::Remote;
use seriatim::remote::RemoteError;
use seriatim::wire::views::StatusView;

use crate::cli::arguments::look::DoctorArguments;
use crate::cli::connect::connect;
use crate::cli::failure::Failure;
use crate::cli::failure::unless_cut_off;
use crate::cli::limits;
use crate::cli::moment::Present;
use crate::cli::moment::span;
use crate::cli::out::Out;
use crate::cli::out::printable;
use crate::cli::queues;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Ok,
    Warn,
    Fail,
}

/// A check, what it found, and what to do about it.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    verdict: Verdict,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, found: impl Into<String>) -> Finding {
        Finding { check, verdict: Verdict::Ok, found: found.into(), remedy: None }
    }

    fn warn(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { check, verdict: Verdict::Warn, found: found.into(), remedy: Some(remedy.into()) }
    }

    fn fail(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Fail, ..Finding::warn(check, found, remedy) }
    }

    fn told(&self) -> String {
        let verdict = match self.verdict {
            Verdict::Ok => "ok  ",
            Verdict::Warn => "WARN",
            Verdict::Fail => "FAIL",
        };
        let remedy = self.remedy.as_deref().map(|remedy| format!(" -> {remedy}")).unwrap_or_default();
        printable(&format!("{verdict} {}: {}{remedy}", self.check, self.found))
    }
}

/// Checks a daemon; true when nothing has failed.
pub(crate) async fn run(arguments: DoctorArguments) -> Result<bool, Failure> {
    let remote = connect(&arguments.daemon)?;
    let out = Out::new(arguments.daemon.json);
    let status = remote.status().await;
    if let Err(error @ (RemoteError::Unreachable { .. } | RemoteError::Malformed { .. })) = status {
        say(&out, &Finding::fail("reachable", error.to_string(), "start it, or say where it is with --url"))?;
        return Err(Failure::to("check the daemon")(error));
    }
    let mut findings = match &status {
        Ok(status) => of_status(&remote, status, &Present::here()),
        Err(error) => vec![
            Finding::ok("reachable", remote.url()),
            Finding::fail("status", error.to_string(), "give a key that may: --key-file, SERIATIM_KEY"),
        ],
    };
    findings.push(ready(&remote).await);
    findings.extend(clock(&remote).await);
    findings.push(definitions(&remote).await);
    findings.push(blocked(&remote).await);
    findings.push(dead_letters(&remote).await);
    unless_cut_off(findings.iter().try_for_each(|finding| say(&out, finding)))?;
    Ok(findings.iter().all(|finding| finding.verdict != Verdict::Fail))
}

fn say(out: &Out, finding: &Finding) -> Result<(), Failure> {
    out.json(finding)?;
    Ok(out.say(finding.told())?)
}

fn of_status(remote: &Remote, status: &StatusView, present: &Present) -> Vec<Finding> {
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
    findings.extend(status.file_bytes.map(|bytes| {
        let file = status.file.as_deref().unwrap_or("its file");
        Finding::ok("store", format!("{file} has {} MiB", bytes.div_ceil(1 << 20)))
    }));
    findings
}

async fn clock(remote: &Remote) -> Option<Finding> {
    let now = remote.clock().await.ok()??;
    Some(match Present::here().apart(now) {
        apart if apart <= limits::CLOCKS_APART => Finding::ok("clock", "as ours, to a few seconds"),
        apart => Finding::warn(
            "clock",
            format!("the daemon's is {} from ours", span(apart)),
            "see that both machines keep their time",
        ),
    })
}

async fn blocked(remote: &Remote) -> Finding {
    match remote.blocked(None, None, limits::PAGE).await {
        Ok(page) if page.blocked.is_empty() => Finding::ok("workflows", "none is blocked"),
        Ok(page) => {
            let more = if page.after.is_some() { "more than " } else { "" };
            let found = format!("{more}{} do not get on", page.blocked.len());
            Finding::warn("workflows", found, "seriatim blocked")
        }
        Err(error) => Finding::warn("workflows", error.to_string(), "a key with the right to manage"),
    }
}

async fn dead_letters(remote: &Remote) -> Finding {
    match queues::all(remote).await {
        Ok(queues) => match queues.iter().map(|queue| queue.counts.dead_lettered).sum::<u64>() {
            0 => Finding::ok("dead letters", "none"),
            letters => Finding::warn("dead letters", letters.to_string(), "seriatim dlq"),
        },
        Err(failure) => Finding::warn("dead letters", failure.to_string(), "a key with the right to manage"),
    }
}

async fn ready(remote: &Remote) -> Finding {
    match remote.ready().await {
        Ok(()) => Finding::ok("ready", "it takes work"),
        Err(error) => Finding::fail("ready", error.to_string(), "see the daemon's log"),
    }
}

async fn definitions(remote: &Remote) -> Finding {
    let definitions = match remote.definitions().await {
        Ok(definitions) => definitions,
        Err(error) => {
            return Finding::warn("definitions", error.to_string(), "a key with the right to manage");
        }
    };
    let refused = remote.status().await.ok().and_then(|status| status.reload_problem);
    let wrong = definitions.iter().find_map(|definition| {
        let error = definition.problem.as_ref()?;
        Some(format!("{}: {error}", definition.file))
    });
    let wrong = refused.or(wrong);
    let paused = definitions.iter().filter(|definition| definition.paused).count();
    match wrong {
        Some(wrong) => {
            Finding::fail("definitions", wrong, "mend the file, then: seriatim definitions reload")
        }
        None if paused > 0 => {
            Finding::warn("definitions", format!("{paused} are paused"), "seriatim definitions resume QUEUE")
        }
        None => Finding::ok("definitions", format!("{} loaded", definitions.len())),
    }
}
