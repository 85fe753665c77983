//! The topics of an engine.

use std::sync::Arc;

use crate::engine::client::client::Client;
use crate::engine::client::fanout::CompiledTopic;
use crate::engine::client::topic::Topic;
use crate::engine::client::topic::TopicView;
use crate::engine::query::Query;
use crate::engine::rules::topic_record::TopicChange;
use crate::error::Misuse;
use crate::error::OperationError;
use crate::error::TopicError;
use crate::error::TopicRefusal;
use crate::error::Unavailable;
use crate::id::QueueName;
#[cfg(feature = "daemon")]
use crate::limits;

impl Client {
    /// Creates a topic, unless there is one of this name. A topic and a queue never have the same name.
    ///
    /// # Errors
    /// [`TopicRefusal::NameIsQueue`] and [`TopicRefusal::TooManyTopics`]; [`Misuse`] for a bad name.
    pub async fn create_topic(&self, name: impl AsRef<str>) -> Result<Topic, TopicError> {
        let topic = self.topic(name)?;
        topic.change(TopicChange::Create).await?;
        Ok(topic)
    }

    /// A handle of a topic, whether it exists or not; operations on one that does not are refused.
    ///
    /// # Errors
    /// [`Misuse`] for a name that no topic can have.
    pub fn topic(&self, name: impl AsRef<str>) -> Result<Topic, Misuse> {
        let name = QueueName::new(name)?;
        if name.subscription().is_some() {
            return Err(Misuse::new("topic name", "is the name of a subscription"));
        }
        Ok(Topic::new(self.clone(), name))
    }

    /// Deletes a topic with its subscriptions and everything in them. What these store is removed some at a time, so that
    /// others are served meanwhile: if the future is dropped before it ends, a part may be gone.
    ///
    /// # Errors
    /// [`TopicRefusal::TopicNotFound`].
    pub async fn delete_topic(&self, name: impl AsRef<str>) -> Result<(), TopicError> {
        let topic = self.topic(name)?;
        let view = topic.view().await?;
        let view = view.ok_or_else(|| TopicRefusal::TopicNotFound(topic.name().clone()))?;
        for subscription in view.subscriptions {
            match self.empty_in_slices(&subscription.queue).await {
                Ok(()) | Err(OperationError::Refused(_)) => {}
                Err(OperationError::Misuse(misuse)) => return Err(misuse.into()),
                Err(OperationError::Unavailable(unavailable)) => return Err(unavailable.into()),
            }
        }
        topic.change(TopicChange::Delete).await?;
        self.forget_topic(topic.name());
        Ok(())
    }

    /// Up to `limit` topics in order of name, at most 1,000, after the given one (from the start for `None`).
    ///
    /// # Errors
    /// [`Unavailable`] when the engine is closed.
    pub async fn topics(
        &self,
        after: Option<&QueueName>,
        limit: usize,
    ) -> Result<Vec<TopicView>, Unavailable> {
        let topics = self.look_up(|slot| Query::Topics { after: after.cloned(), limit, slot }).await?;
        Ok(topics.iter().map(|topic| TopicView::from(&**topic)).collect())
    }

    /// The topic whose name differs from this one in case only.
    #[cfg(feature = "daemon")]
    pub(crate) async fn topic_named_alike(&self, name: &str) -> Result<Option<TopicView>, Unavailable> {
        let all = |slot| Query::Topics { after: None, limit: limits::TOPICS_MAX, slot };
        let topics = self.look_up(all).await?;
        // Only of the one that is found anything is copied: all of them may have very many rules.
        let alike = topics.iter().find(|topic| topic.name.as_str().eq_ignore_ascii_case(name));
        Ok(alike.map(|topic| TopicView::from(&**topic)))
    }

    pub(crate) async fn compiled_topic(
        &self,
        name: &QueueName,
    ) -> Result<Option<Arc<CompiledTopic>>, Unavailable> {
        if let Some(known) = self.known_topics().get(name) {
            return Ok(Some(known));
        }
        let Some(record) = self.topic_record(name).await? else { return Ok(None) };
        let compiled = Arc::new(CompiledTopic::of(&record));
        self.known_topics().insert(name.clone(), compiled.clone());
        Ok(Some(compiled))
    }

    pub(crate) fn forget_topic(&self, name: &QueueName) {
        self.known_topics().forget(name);
    }
}
