//! `seriatim settle`: what becomes of a message that `receive --keep` took.

use serde_json::Value;
use serde_json::json;

use crate::cli::arguments::take::SettleArguments;
use crate::cli::arguments::take::Settlement;
use crate::cli::connect::connect;
use crate::cli::failure::Failure;
use crate::cli::out::Out;

/// Settles a delivery, or renews its lock.
pub(crate) async fn run(arguments: SettleArguments) -> Result<bool, Failure> {
    let remote = connect(&arguments.daemon)?;
    let out = Out::new(arguments.daemon.json);
    let (verb, done, particulars) = request(&arguments.how);
    let settled = remote.settle(&arguments.queue, &arguments.delivery, verb, &particulars).await;
    let answer = settled.map_err(Failure::to(format!("{verb} {}", arguments.delivery)))?;
    match answer.is_null() {
        true => out.json(&json!({ "delivery": arguments.delivery, "settled": verb }))?,
        false => out.json(&answer)?,
    }
    match answer.get("locked_until").and_then(Value::as_str) {
        Some(until) => out.say(format!("{done}, until {until}"))?,
        None => out.say(done)?,
    }
    Ok(true)
}

/// The verb, what it has done, and what goes with it.
fn request(how: &Settlement) -> (&'static str, &'static str, Value) {
    let mut particulars = match how {
        Settlement::Abandon { retry_after, reason } => {
            json!({ "retry_after": retry_after, "reason": reason })
        }
        Settlement::Defer { until } => json!({ "until": until }),
        Settlement::DeadLetter { reason, description } => {
            json!({ "reason": reason, "description": description })
        }
        Settlement::Complete | Settlement::Release | Settlement::Renew => json!({}),
    };
    if let Value::Object(fields) = &mut particulars {
        fields.retain(|_, value| !value.is_null());
    }
    let (verb, done) = match how {
        Settlement::Complete => ("complete", "completed"),
        Settlement::Abandon { .. } => ("abandon", "given back as failed"),
        Settlement::Defer { .. } => ("defer", "set aside"),
        Settlement::DeadLetter { .. } => ("dead_letter", "dead-lettered"),
        Settlement::Release => ("release", "given back unstarted"),
        Settlement::Renew => ("renew", "still locked"),
    };
    (verb, done, particulars)
}
