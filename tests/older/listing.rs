//! All that a client can see of an engine, as JSON.

use serde_json::Value;
use serde_json::json;
use seriatim::Client;
use seriatim::Queue;
use seriatim::SequenceNumber;
use seriatim::limits;

/// Lists everything.
pub(crate) async fn listing(client: &Client) -> Value {
    let mut queues = Vec::new();
    for view in client.queues(None, limits::PAGE_MAX).await.expect("the engine is open") {
        let queue = client.queue(&view.name).expect("a good name");
        queues.push(json!({
            "queue": value(&view),
            "workflows": workflows(&queue).await,
            "messages": messages(&queue).await,
            "dead_letters": value(&queue.dead_letters(None, limits::PAGE_MAX).await.expect("it is there")),
        }));
    }
    json!({
        "queues": queues,
        "audit": value(&client.audit(0, limits::PAGE_MAX).await.expect("the engine is open")),
        "next_due": value(&client.next_due().await.expect("the engine is open")),
    })
}

async fn workflows(queue: &Queue) -> Vec<Value> {
    let mut workflows = Vec::new();
    for view in queue.workflows(None, limits::PAGE_MAX).await.expect("it is there") {
        let Some(id) = &view.workflow_id else { continue };
        let workflow = queue.workflow(id).expect("a good ID");
        let state = workflow.state().await.expect("it is there");
        workflows.push(json!({ "workflow": value(&view), "state": value(&state) }));
    }
    workflows
}

async fn messages(queue: &Queue) -> Vec<Value> {
    let all = queue.peek(SequenceNumber::new(0), limits::PAGE_MAX).await.expect("it is there");
    all.iter().map(value).collect()
}

fn value(shown: &impl serde::Serialize) -> Value {
    serde_json::to_value(shown).expect("views can be written as JSON")
}

/// Where something that the older listing says is not so in the newer.
pub(crate) fn difference(path: &str, older: &Value, newer: &Value) -> Option<String> {
    match (older, newer) {
        (Value::Object(older), Value::Object(newer)) => older.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            difference(&path, value, newer.get(name).unwrap_or(&Value::Null))
        }),
        (Value::Array(older), Value::Array(newer)) if older.len() == newer.len() => {
            let pairs = older.iter().zip(newer).enumerate();
            pairs
                .into_iter()
                .find_map(|(at, (older, newer))| difference(&format!("{path}[{at}]"), older, newer))
        }
        (older, newer) if older == newer => None,
        (older, newer) => Some(format!("{path} was {older}, and is {newer}")),
    }
}
