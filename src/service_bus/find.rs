//! Finding the queue or topic of a name, and the entity of an address.

use crate::engine::QueueView;
use crate::engine::TopicView;
use crate::error::QueueError;
use crate::error::Unavailable;
use crate::limits;
use crate::queue::QueueOptions;
use crate::service_bus::address::EntityPath;
use crate::service_bus::creation_instant::CreationInstant;
use crate::service_bus::entity::Entity;
use crate::service_bus::entity::QueueOrTopic;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::shared::EndpointState;

impl EndpointState {
    /// The queue or topic of a name; names that differ in case only are one, unless there are two.
    pub(crate) async fn find(&self, name: &str) -> Result<Option<QueueOrTopic>, QueueError> {
        // A name that no queue can have is one that no queue has.
        let Ok(queue) = self.client.queue(name) else { return Ok(None) };
        if let Some(view) = queue.view_if_any().await? {
            return Ok(Some(QueueOrTopic::Queue(Box::new(view))));
        }
        if let Some(topic) = self.topic_named(name).await? {
            return Ok(Some(QueueOrTopic::Topic(Box::new(topic))));
        }
        Ok(self.named_alike(name).await?.map(|view| QueueOrTopic::Queue(Box::new(view))))
    }

    /// Finds what an address names; names that differ in case only are one, unless there are two.
    pub(crate) async fn entity(&self, path: &EntityPath) -> Result<Entity, AmqpRefusal> {
        let not_found = || AmqpRefusal::not_found(&path.queue);
        let view = match self.find(&path.queue).await? {
            Some(QueueOrTopic::Queue(view)) => *view,
            Some(QueueOrTopic::Topic(topic)) => return self.topic_entity(path, &topic),
            None => return Err(not_found()),
        };
        if !(self.is_open)(&view.name) {
            return Err(not_found());
        }
        let created_at = CreationInstant::from(&view);
        let description = self.descriptions.of(&view.name, created_at);
        Ok(Entity {
            queue: self.client.queue(view.name.as_str())?,
            is_dead_letters: path.is_dead_letters,
            is_transfer: path.is_transfer,
            description,
            options: view.options,
            created_at,
            topic: None,
        })
    }

    /// A topic: what is sent to it is read as for a queue in order of arrival.
    fn topic_entity(&self, path: &EntityPath, view: &TopicView) -> Result<Entity, AmqpRefusal> {
        let (name, created_at) = (view.name.clone(), CreationInstant::from(view));
        if path.is_dead_letters || !(self.is_open)(&name) {
            return Err(AmqpRefusal::not_found(&path.queue));
        }
        let description = self.descriptions.of(&name, created_at);
        let body_bytes_max = description.body_bytes_max.unwrap_or(limits::BODY_BYTES_MAX);
        Ok(Entity {
            queue: self.client.queue(&name)?,
            is_dead_letters: false,
            is_transfer: false,
            description,
            options: QueueOptions { body_bytes_max, ..QueueOptions::default() },
            created_at,
            topic: Some(self.client.topic(&name)?),
        })
    }

    /// The topic of a name; names that differ in case only are one.
    async fn topic_named(&self, name: &str) -> Result<Option<TopicView>, Unavailable> {
        let Ok(topic) = self.client.topic(name) else { return Ok(None) };
        if let Some(view) = topic.view().await? {
            return Ok(Some(view));
        }
        self.client.topic_named_alike(name).await
    }

    /// The queue whose name differs in case only.
    async fn named_alike(&self, name: &str) -> Result<Option<QueueView>, QueueError> {
        let Some(name) = self.client.queue_named_alike(name).await? else { return Ok(None) };
        self.client.queue(&name)?.view_if_any().await
    }
}
