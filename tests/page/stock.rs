//! What stands in the queues of a test: workflows that are stuck in every way there is.

use serde_json::Value;
use serde_json::json;

use crate::page::fixture::Fixture;
use crate::page::fixture::encoded;

/// A workflow ID that would like to be more than text.
pub(crate) const HOSTILE: &str = "</title><img src=x onerror=alert(1)>&\"'\u{202e}\u{200b}/?#%";

/// A definition with a handler that does nothing, and a schedule.
pub(crate) const DEFINED: (&str, &str) = (
    "defined.toml",
    "order = \"arrival\"\n[[handler]]\nexec = [\"true\"]\n[[schedule]]\nname = \"nightly\"\ncron = \"0 2 * * *\"\nworkflow_id = \"tick\"\n",
);

impl Fixture {
    /// Creates a queue in order by position.
    pub(crate) async fn create(&self, queue: &str) {
        self.api("PUT", &format!("/queues/{queue}"), r#"{"order":"position","history":"1h"}"#).await;
    }

    pub(crate) async fn send(&self, queue: &str, id: &str, position: u64, body: &str) {
        let (id, position) = (encoded(id), position.to_string());
        let headers = [("seriatim-workflow-id", id.as_str()), ("seriatim-position", position.as_str())];
        let answer = self.api_as("POST", &format!("/queues/{queue}/messages"), body, &headers).await;
        assert!(answer.status < 300, "{answer:?}");
    }

    /// Receives the next message of a queue.
    pub(crate) async fn receive(&self, queue: &str) -> String {
        let asked = r#"{"max":1,"wait":"60s"}"#;
        let received = self.api("POST", &format!("/queues/{queue}/receive"), asked).await;
        received["deliveries"][0]["delivery"].as_str().expect("a delivery").to_owned()
    }

    pub(crate) async fn settle(&self, queue: &str, how: &str, body: Value) {
        let delivery = self.receive(queue).await;
        self.api("POST", &format!("/queues/{queue}/deliveries/{delivery}/{how}"), &body.to_string()).await;
    }

    /// Sends one message and lets it fail once.
    pub(crate) async fn fail(&self, queue: &str, id: &str, reason: &str) {
        self.send(queue, id, 1, "{}").await;
        self.settle(queue, "abandon", json!({ "retry_after": "1h", "reason": reason })).await;
    }

    /// Sends one message and makes it a dead letter.
    pub(crate) async fn bury(&self, queue: &str, id: &str, reason: &str, error: &str) {
        self.send(queue, id, 1, "{}").await;
        self.settle(queue, "dead_letter", json!({ "reason": reason, "description": error })).await;
    }

    /// The picture of the issue: 15 is done, 16 failed three times, 17 and 18 wait, 19 has never come, 20 is early.
    pub(crate) async fn stall(&self, queue: &str, id: &str) {
        for position in (1..=18).chain([20]) {
            self.send(queue, id, position, r#"{"cents":18446744073709551616}"#).await;
        }
        for _ in 1..=15 {
            self.settle(queue, "complete", json!({})).await;
        }
        for wait in ["0s", "0s", "1h"] {
            let failed = json!({ "retry_after": wait, "reason": "bank is closed" });
            self.settle(queue, "abandon", failed).await;
        }
    }

    /// What the API says of a workflow; `Null` when nothing is stored of it.
    pub(crate) async fn workflow(&self, queue: &str, id: &str) -> Value {
        let path = format!("/queues/{queue}/workflow?id={}", encoded(id));
        let answer = self.api_as("GET", &path, "", &[]).await;
        match answer.status {
            200 => serde_json::from_slice(&answer.body).expect("JSON"),
            _ => Value::Null,
        }
    }

    /// The number of the first message of a queue that is stored.
    pub(crate) async fn first(&self, queue: &str) -> u64 {
        let messages = self.api("GET", &format!("/queues/{queue}/messages?limit=1"), "").await;
        messages["messages"][0]["sequence_number"].as_u64().expect("a message is stored")
    }

    pub(crate) async fn count(&self, queue: &str, count: &str) -> u64 {
        let view = self.api("GET", &format!("/queues/{queue}"), "").await;
        view["counts"][count].as_u64().unwrap_or_else(|| panic!("no count {count} in {view}"))
    }

    /// The last entry of the audit.
    pub(crate) async fn audited(&self) -> Value {
        self.api("GET", "/audit?newest=true&limit=1", "").await["actions"][0].clone()
    }
}
