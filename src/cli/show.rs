//! `seriatim show`: a queue, a workflow, or a message.

use seriatim::api::pretty;
use seriatim::api::views::QueueEnvelope;
use seriatim::remote::Remote;

use crate::cli::arguments::look::ShowArguments;
use crate::cli::arguments::target::TargetArgument;
use crate::cli::blocked;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::moment::LocalTime;
use crate::cli::out::Stdout;
use crate::cli::show_message;
use crate::cli::show_workflow;
use crate::cli::word::counted;
use crate::cli::word::word;

/// Blocked workflows that are shown with a queue.
const BLOCKED_SHOWN: usize = 10;

/// Shows what is meant. Nothing is changed by looking.
pub(crate) async fn run(arguments: ShowArguments) -> Result<bool, CliFailure> {
    let remote = connect(&arguments.daemon)?;
    let out = Stdout::new(arguments.daemon.json);
    match &arguments.target {
        TargetArgument::Queue(queue) => show_queue(&remote, &out, queue).await?,
        TargetArgument::Workflow(workflow) => {
            show_workflow::run(&remote, &out, workflow, arguments.limit).await?
        }
        TargetArgument::Message(queue, number) => show_message::run(&remote, &out, queue, *number).await?,
    }
    Ok(true)
}

async fn show_queue(remote: &Remote, out: &Stdout, queue: &str) -> Result<(), CliFailure> {
    let shown = remote.queue(queue).await.map_err(CliFailure::to(format!("show {queue}")))?;
    let blocked = blocked::first(remote, Some(queue), None, BLOCKED_SHOWN).await;
    let (blocked, _) = blocked.map_err(CliFailure::to("list what is blocked"))?;
    if out.json {
        let mut described = serde_json::to_value(&shown)?;
        described["blocked"] = serde_json::to_value(&blocked)?;
        return Ok(out.json(&described)?);
    }
    let present = LocalTime::here();
    for line in describe(&shown, &present) {
        out.say(line)?;
    }
    match blocked.is_empty() {
        true => out.say("nothing of it is blocked")?,
        false => out.say(format!("\n{}", blocked::table(&blocked, &present)))?,
    }
    Ok(())
}

fn describe(queue: &QueueEnvelope, present: &LocalTime) -> Vec<String> {
    let counts = &queue.counts;
    let paused = if queue.paused == Some(true) { ", its handlers are paused" } else { "" };
    let mut lines = vec![format!("{}: order {}{paused}", queue.name, word(&queue.options.order))];
    match &queue.definition {
        Some(file) => lines.push(format!("defined in {file}")),
        None => lines.push("no definition: it was created by a call, or its file is gone".to_owned()),
    }
    lines.push(format!("created {}", present.full(queue.created_at)));
    lines.push(format!(
        "stored: {} ready, {} locked, {} early, {} retry, {} exhausted, {} by consumer, {} scheduled, {}",
        counts.ready,
        counts.locked,
        counts.early,
        counts.retry,
        counts.exhausted,
        counts.by_consumer,
        counts.scheduled,
        counted(counts.dead_lettered, "dead letter")
    ));
    if let Some(until) = queue.rate_limited_until {
        lines.push(format!("its rate is used up: hand-out goes on {}", present.age(until)));
    }
    lines.push(format!(
        "ended: {} completed, {} expired, {} cancelled, {} purged; accepted: {}",
        counts.completed, counts.expired, counts.cancelled, counts.purged, counts.accepted
    ));
    if queue.history > 0 {
        lines.push(format!("remembered: {}", counted(queue.history, "ended message")));
    }
    if queue.cursors > 0 || queue.cursors_cut > 0 {
        let cursors = counted(queue.cursors, "cursor");
        lines.push(format!("of forgotten workflows: {cursors}, {} cut before their time", queue.cursors_cut));
    }
    if queue.links_cut > 0 {
        let cut = counted(queue.links_cut, "settled message");
        lines.push(format!("after-ordered workflows forgot {cut}: a resend of one is not recognised"));
    }
    if let Some(last) = queue.retry_delays.last() {
        let delays: Vec<String> = queue.retry_delays.iter().map(ToString::to_string).collect();
        lines.push(format!("retries: after {}, then every {last}", delays.join(", ")));
    }
    if let Ok(options) = serde_json::to_string(&queue.options) {
        lines.push(format!("options: {}", pretty(&options)));
    }
    lines
}
