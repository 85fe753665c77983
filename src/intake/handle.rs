//! The intake: every message that comes from outside goes through it on its way to the engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::engine::Client;
use crate::engine::Receipt;
use crate::error::Misuse;
use crate::error::SendError;
use crate::id::QueueName;
use crate::intake::rule::IntakeRule;
use crate::message::Message;
use crate::shown::shown;

/// The rules of all queues that have one, and the way to the engine. Cheap to clone.
///
/// The rules are swapped as a whole, while messages come in; a message is placed by the rules of one moment. A queue without
/// a rule takes messages as they are.
#[derive(Clone)]
pub struct Intake {
    client: Client,
    rules: Arc<ArcSwap<BTreeMap<QueueName, Arc<IntakeRule>>>>,
}

shown!(Intake {});

impl Intake {
    /// An intake without rules.
    pub fn new(client: Client) -> Intake {
        Intake { client, rules: Arc::default() }
    }

    /// The engine's client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Puts these rules in the place of those there were.
    pub fn replace_rules(&self, rules: BTreeMap<QueueName, Arc<IntakeRule>>) {
        self.rules.store(Arc::new(rules));
    }

    /// The rule of a queue, if it has one.
    pub fn rule(&self, queue: impl AsRef<str>) -> Option<Arc<IntakeRule>> {
        self.rules.load().get(queue.as_ref()).cloned()
    }

    /// Fills in the workflow, place and ID of a message for this queue.
    ///
    /// # Errors
    /// [`Misuse`] as [`IntakeRule::place`].
    pub fn place(&self, queue: impl AsRef<str>, message: Message) -> Result<Message, Misuse> {
        match self.rules.load().get(queue.as_ref()) {
            Some(rule) => rule.place(message),
            None => Ok(message),
        }
    }

    /// Sends messages to a queue: all of them in one transaction, or none.
    ///
    /// # Errors
    /// [`SendError`] for the first message that is refused or cannot be placed.
    pub async fn send(
        &self,
        queue: impl AsRef<str>,
        messages: Vec<Message>,
    ) -> Result<Vec<Receipt>, SendError> {
        let queue = self.client.queue(queue)?;
        let placed: Result<Vec<Message>, Misuse> =
            messages.into_iter().map(|message| self.place(queue.name(), message)).collect();
        queue.send_batch(placed?).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::intake::rule::Sources;
    use crate::intake::source::FieldSource;
    use crate::intake::source::Pointer;
    use crate::queue::QueueOptions;

    fn keyed_by(pointer: &str) -> BTreeMap<QueueName, Arc<IntakeRule>> {
        let key = Some(FieldSource::Pointer(Pointer::new(pointer).unwrap()));
        let rule = IntakeRule::new(Sources { key, ..Sources::default() }, Vec::new());
        BTreeMap::from([(QueueName::new("orders").unwrap(), Arc::new(rule))])
    }

    #[tokio::test]
    async fn messages_are_placed_by_the_rules_of_their_moment() {
        let (engine, _clock) = crate::testing::engine().await.unwrap();
        let orders = engine.client().create_queue("orders", QueueOptions::default()).await.unwrap();
        let intake = Intake::new(engine.client().clone());
        intake.replace_rules(keyed_by("/a"));
        let body = r#"{"a":1,"b":2}"#;
        intake.clone().send("orders", vec![Message::new(body)]).await.unwrap();
        intake.replace_rules(keyed_by("/b"));
        intake.send("orders", vec![Message::new(body)]).await.unwrap();
        let mut workflows = Vec::new();
        for delivery in orders.receive_many(2, Duration::ZERO).await.unwrap() {
            workflows.push(delivery.message().workflow_id.as_ref().unwrap().to_string());
        }
        assert_eq!(workflows, ["1", "2"]);
    }

    #[tokio::test]
    async fn one_message_that_cannot_be_placed_keeps_all_from_being_sent() {
        let (engine, _clock) = crate::testing::engine().await.unwrap();
        let orders = engine.client().create_queue("orders", QueueOptions::default()).await.unwrap();
        let intake = Intake::new(engine.client().clone());
        intake.replace_rules(keyed_by("/a"));
        let messages = vec![Message::new(r#"{"a":1}"#), Message::new("{}")];
        assert!(matches!(intake.send("orders", messages).await, Err(SendError::Misuse(_))));
        assert_eq!(orders.view().await.unwrap().counts.accepted, 0);
    }
}
