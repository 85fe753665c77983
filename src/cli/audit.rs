//! `seriatim audit`: what operators did.

use serde_json::Map;
use serde_json::Value;
use seriatim::wire::WireTime;

use crate::cli::arguments::look::AuditArguments;
use crate::cli::connect::connect;
use crate::cli::failure::Failure;
use crate::cli::limits;
use crate::cli::moment::Present;
use crate::cli::out::Out;
use crate::cli::table::Table;

/// Prints what operators did, oldest first.
pub(crate) async fn run(arguments: AuditArguments) -> Result<bool, Failure> {
    let remote = connect(&arguments.daemon)?;
    let out = Out::new(arguments.daemon.json);
    let (mut actions, mut after): (Vec<Value>, Option<String>) = (Vec::new(), arguments.after);
    while actions.len() < arguments.limit {
        let limit = limits::PAGE.min(arguments.limit - actions.len());
        let page = remote.audit(after.as_deref(), limit).await;
        let page = page.map_err(Failure::to("list what operators did"))?;
        actions.extend(page.actions);
        // A page that ends where it began would never end.
        after = page.after.filter(|next| after.as_ref() != Some(next));
        if after.is_none() {
            break;
        }
    }
    let present = Present::here();
    let mut table = Table::new(&["when", "who", "what", "on", "reason", ""]);
    for action in &actions {
        out.json(action)?;
        table.row(row(action, &present));
    }
    match table.is_empty() {
        true => out.say("no operator did anything")?,
        false => out.say(table.to_string())?,
    }
    if let Some(after) = after {
        out.say(format!("... and more: --after {after}"))?;
    }
    Ok(true)
}

/// When, who, what, on what and why; then whatever else is said.
fn row(action: &Value, present: &Present) -> [String; 6] {
    let mut fields = action.as_object().cloned().unwrap_or_default();
    let at = fields.remove("at").and_then(|at| serde_json::from_value::<WireTime>(at).ok());
    let queue = taken(&mut fields, "queue");
    let subject = match (taken(&mut fields, "workflow_id"), taken(&mut fields, "sequence_number")) {
        (id, _) if !id.is_empty() => format!("{queue}/{id}"),
        (_, number) if !number.is_empty() => format!("{queue}#{number}"),
        _ => queue,
    };
    let [who, what, why] = ["actor", "verb", "reason"].map(|name| taken(&mut fields, name));
    let rest = fields.iter().filter(|(_, value)| !value.is_null());
    let rest = rest.map(|(name, value)| format!("{name}={}", text(value)));
    let when = at.map(|at| present.full(at)).unwrap_or_default();
    [when, who, what, subject, why, rest.collect::<Vec<_>>().join(" ")]
}

fn taken(fields: &mut Map<String, Value>, name: &str) -> String {
    fields.remove(name).map(|value| text(&value)).unwrap_or_default()
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_action_says_who_did_what_to_what_and_why() {
        let action = json!({
            "at": 0, "actor": "anna", "verb": "skip", "queue": "orders", "workflow_id": "4711", "reason": "bad",
            "sequence_number": 7, "from": 1, "to": null,
        });
        let row = row(&action, &Present::at(5_000));
        assert_eq!(
            row,
            ["1970-01-01T00:00:00+00:00 (5s ago)", "anna", "skip", "orders/4711", "bad", "from=1"]
        );
    }
}
