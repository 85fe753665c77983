//! `seriatim settle`: what becomes of a message that `receive --keep` took.

use serde_json::Value;
use serde_json::json;

use crate::cli::arguments::take::SettleArguments;
use crate::cli::arguments::take::SettlementArgument;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::out::Stdout;

/// Settles a delivery, or renews its lock.
pub(crate) async fn run(arguments: SettleArguments) -> Result<bool, CliFailure> {
    let remote = connect(&arguments.daemon)?;
    let out = Stdout::new(arguments.daemon.json);
    let (verb, done, particulars) = request(&arguments.how);
    let settled = remote.settle(&arguments.queue, &arguments.delivery, verb, &particulars).await;
    let answer = settled.map_err(CliFailure::to(format!("{verb} {}", arguments.delivery)))?;
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
fn request(how: &SettlementArgument) -> (&'static str, &'static str, Value) {
    let mut particulars = match how {
        SettlementArgument::Abandon { retry_after, reason } => {
            json!({ "retry_after": retry_after, "reason": reason })
        }
        SettlementArgument::Defer { until } => json!({ "until": until }),
        SettlementArgument::DeadLetter { reason, description } => {
            json!({ "reason": reason, "description": description })
        }
        SettlementArgument::Complete | SettlementArgument::Release | SettlementArgument::Renew => json!({}),
    };
    if let Value::Object(fields) = &mut particulars {
        fields.retain(|_, value| !value.is_null());
    }
    let (verb, done) = match how {
        SettlementArgument::Complete => ("complete", "completed"),
        SettlementArgument::Abandon { .. } => ("abandon", "given back as failed"),
        SettlementArgument::Defer { .. } => ("defer", "set aside"),
        SettlementArgument::DeadLetter { .. } => ("dead_letter", "dead-lettered"),
        SettlementArgument::Release => ("release", "given back unstarted"),
        SettlementArgument::Renew => ("renew", "still locked"),
    };
    (verb, done, particulars)
}
