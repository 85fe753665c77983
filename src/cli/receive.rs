//! `seriatim receive`: look, or take.

use std::time::Duration;

use serde_json::json;
use seriatim::remote::Remote;

use crate::cli::arguments::take::ReceiveArguments;
use crate::cli::connect::connect;
use crate::cli::failure::Failure;
use crate::cli::moment::Present;
use crate::cli::out::Out;
use crate::cli::out::remark;
use crate::cli::show_message::delivery_told;
use crate::cli::show_message::told;

/// Prints the first messages of a queue; takes them only when that was said.
pub(crate) async fn run(arguments: ReceiveArguments) -> Result<bool, Failure> {
    let remote = connect(&arguments.daemon)?;
    let out = Out::new(arguments.daemon.json);
    match arguments.complete || arguments.keep {
        true => take(&remote, &out, &arguments).await,
        false => look(&remote, &out, &arguments).await,
    }
}

async fn look(remote: &Remote, out: &Out, arguments: &ReceiveArguments) -> Result<bool, Failure> {
    if arguments.wait.is_some() || arguments.run {
        let problem = "--wait and --run take messages, and so need --complete or --keep";
        return Err(Failure::Argument(format!("receive from {}: {problem}", arguments.queue)));
    }
    let page = remote.messages(&arguments.queue, 0, arguments.max as usize).await;
    let page = page.map_err(Failure::to(format!("look at {}", arguments.queue)))?;
    let present = Present::here();
    for message in &page.messages {
        out.json(message)?;
        for line in told(&arguments.queue, message, &present) {
            out.say(line)?;
        }
    }
    remark(format!(
        "looked at {} messages and took none: --complete takes and completes them, --keep takes them",
        page.messages.len()
    ));
    Ok(true)
}

async fn take(remote: &Remote, out: &Out, arguments: &ReceiveArguments) -> Result<bool, Failure> {
    let queue = &arguments.queue;
    let wait = arguments.wait.map_or(Duration::ZERO, |wait| wait.0);
    let taken = remote.receive(queue, arguments.max as usize, wait, arguments.run).await;
    let taken = taken.map_err(Failure::to(format!("receive from {queue}")))?;
    if taken.is_empty() {
        remark("nothing is ready");
    }
    let present = Present::here();
    let mut all_settled = true;
    for delivery in &taken {
        out.json(delivery)?;
        for line in delivery_told(delivery, &present) {
            out.say(line)?;
        }
        let Some(id) = delivery.delivery.as_deref().filter(|_| arguments.complete) else { continue };
        if let Err(error) = remote.settle(queue, id, "complete", &json!({})).await {
            // Those that follow are still locked and may still be completed.
            let number = delivery.sequence_number;
            remark(format!("{queue}#{number} was not completed, and will be offered again: {error}"));
            all_settled = false;
        }
    }
    Ok(all_settled)
}
