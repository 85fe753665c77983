//! `seriatim receive`: look, or take.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use seriatim::Clock;
use seriatim::SystemClock;
use seriatim::api::DeliveryEnvelope;
use seriatim::api::ReceiveRequest;
use seriatim::api::ReceiveResponse;
use seriatim::api::WireDuration;
use seriatim::remote::Remote;

use crate::cli::arguments::take::ReceiveArguments;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::limits;
use crate::cli::moment::LocalTime;
use crate::cli::out::Stdout;
use crate::cli::out::remark;
use crate::cli::show_message::delivery_lines;
use crate::cli::show_message::describe;
use crate::cli::word::counted;

/// Prints the first messages of a queue; takes them only when that was said.
pub(crate) async fn run(arguments: ReceiveArguments) -> Result<bool, CliFailure> {
    let remote = connect(&arguments.daemon)?;
    let out = Stdout::new(arguments.daemon.json);
    match arguments.complete || arguments.keep {
        true => take(&remote, &out, &arguments).await,
        false => look(&remote, &out, &arguments).await,
    }
}

async fn look(remote: &Remote, out: &Stdout, arguments: &ReceiveArguments) -> Result<bool, CliFailure> {
    if arguments.dead_letters {
        let problem =
            "--dead-letters takes them, and so needs --complete or --keep; `seriatim dlq` looks at them";
        return Err(CliFailure::Argument(format!("receive from {}: {problem}", arguments.queue)));
    }
    if arguments.wait.is_some() || arguments.run {
        let problem = "--wait and --run take messages, and so need --complete or --keep";
        return Err(CliFailure::Argument(format!("receive from {}: {problem}", arguments.queue)));
    }
    let page = remote.messages(&arguments.queue, 0, arguments.max as usize).await;
    let page = page.map_err(CliFailure::to(format!("look at {}", arguments.queue)))?;
    let present = LocalTime::here();
    for message in &page.messages {
        out.json(message)?;
        for line in describe(&arguments.queue, message, &present) {
            out.say(line)?;
        }
    }
    remark(format!(
        "looked at {} and took none: --complete takes and completes them, --keep takes them",
        counted(page.messages.len() as u64, "message")
    ));
    Ok(true)
}

async fn take(remote: &Remote, out: &Stdout, arguments: &ReceiveArguments) -> Result<bool, CliFailure> {
    let queue = &arguments.queue;
    let received = wait_for(remote, arguments).await?;
    if received.deliveries.is_empty() {
        remark("nothing is ready");
        return Ok(true);
    }
    let (read, unread) = received.deliveries.split_at(print(out, &received)?);
    let failed = || CliFailure::to(format!("settle what was received from {queue}"));
    match (&received.run, arguments.complete) {
        (Some(run), false) if unread.is_empty() => {
            let completed = read.len();
            // As a queue of a topic stands in a path.
            let queue = queue.replace('/', "%2F");
            let request = format!("/v1/queues/{queue}/runs/{run}/settle with {{\"completed\":{completed}}}");
            remark(format!("no verb settles a run: POST {request} completes it"));
            return Ok(true);
        }
        // What is not completed of it is given back with that; a run is kept whole or not at all.
        (Some(run), complete) => {
            let completed = if complete { read.len() } else { 0 };
            let settled = remote.settle_run(queue, run, &json!({ "completed": completed })).await;
            settled.map_err(failed())?;
        }
        (None, complete) => {
            let all_completed = if complete { complete_all(remote, queue, read).await } else { Ok(true) };
            // The last first: what is given back goes before what is ready.
            for delivery in unread.iter().rev().filter_map(|delivery| delivery.delivery.as_deref()) {
                let released = remote.settle(queue, delivery, "release", &json!({})).await;
                released.map_err(failed())?;
            }
            if !all_completed? {
                return Ok(false);
            }
        }
    }
    if !unread.is_empty() {
        remark(format!("nobody read {}: given back", counted(unread.len() as u64, "message")));
    }
    Ok(unread.is_empty())
}

/// A delivery as a line of JSON, and the run that it is one of, which is settled as a whole.
#[derive(Serialize)]
struct DeliveryLine<'d> {
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'d str>,
    #[serde(flatten)]
    delivery: &'d DeliveryEnvelope,
}

/// Prints what was received, and says how much of it somebody read.
fn print(out: &Stdout, received: &ReceiveResponse) -> Result<usize, CliFailure> {
    let (present, deliveries) = (LocalTime::here(), &received.deliveries);
    let print_one = |delivery: &DeliveryEnvelope| -> Result<(), CliFailure> {
        out.json(&DeliveryLine { run: received.run.as_deref(), delivery })?;
        Ok(delivery_lines(delivery, &present).into_iter().try_for_each(|line| out.say(line))?)
    };
    for (at, delivery) in deliveries.iter().enumerate() {
        match print_one(delivery) {
            Err(failure) if failure.is_broken_pipe() => return Ok(at),
            printed => printed?,
        }
    }
    Ok(deliveries.len())
}

/// Completes what was printed; true when none of it was refused.
async fn complete_all(
    remote: &Remote,
    queue: &str,
    deliveries: &[DeliveryEnvelope],
) -> Result<bool, CliFailure> {
    let ids: Vec<String> = deliveries.iter().filter_map(|delivery| delivery.delivery.clone()).collect();
    if ids.is_empty() {
        return Ok(true);
    }
    let completed = remote.complete_all(queue, &ids).await;
    let completed = completed.map_err(CliFailure::to(format!("complete what was received from {queue}")))?;
    let mut all_completed = true;
    for result in &completed.results {
        let Some(problem) = &result.error else { continue };
        all_completed = false;
        let (delivery, detail, code) = (&result.delivery, &problem.detail, &problem.code);
        let so = if code == "delivery_settled" { "is settled already" } else { "is offered again" };
        remark(format!("{delivery} was not completed, and {so}: {detail} ({code})"));
    }
    Ok(all_completed)
}

/// Takes messages; a wait that is longer than the daemon's longest is made of several.
async fn wait_for(remote: &Remote, arguments: &ReceiveArguments) -> Result<ReceiveResponse, CliFailure> {
    let (clock, queue) = (SystemClock::default(), &arguments.queue);
    let wait = arguments.wait.map_or(Duration::ZERO, |wait| wait.0);
    // So many waits, and one more, make up the whole; a daemon that is about to stop answers earlier.
    let rounds = wait.as_secs().div_ceil(limits::RECEIVE_WAIT.as_secs()).saturating_add(1);
    let mut rest = wait;
    for _ in 0..rounds {
        let span = rest.min(limits::RECEIVE_WAIT);
        let request = ReceiveRequest {
            max: Some(arguments.max as usize),
            wait: Some(WireDuration(span)),
            run: arguments.run,
            dead_letters: arguments.dead_letters,
            state: false,
            raw: false,
        };
        let received = remote.receive(queue, &request).await;
        let received = received.map_err(CliFailure::to(format!("receive from {queue}")))?;
        if !received.deliveries.is_empty() {
            return Ok(received);
        }
        rest = wait.saturating_sub(clock.elapsed());
        if rest.is_zero() {
            break;
        }
    }
    Ok(ReceiveResponse::default())
}
