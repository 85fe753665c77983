//! Calls about topics.

use bytes::Bytes;

use crate::api::PageQuery;
use crate::api::PublishResponse;
use crate::api::SendEnvelope;
use crate::api::TopicPage;
use crate::remote::error::RemoteError;
use crate::remote::exchange::NDJSON;
use crate::remote::messages::lines_of;
use crate::remote::remote::Remote;
use crate::remote::route::RequestPath;

impl Remote {
    /// A page of topics in order of name, after the given one.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn topics(&self, after: Option<&str>, limit: usize) -> Result<TopicPage, RemoteError> {
        let query = PageQuery { after: after.map(str::to_owned), limit: Some(limit) };
        self.get(RequestPath::new("/v1/topics").asking(&query)).answer().await
    }

    /// Sends messages to a topic in one transaction: every subscription that wants one gets it, or none does.
    ///
    /// # Errors
    /// [`RemoteError`]; a problem with the code `topic_not_found` when there is no such topic.
    pub async fn publish(
        &self,
        topic: &str,
        messages: &[SendEnvelope],
    ) -> Result<PublishResponse, RemoteError> {
        self.publish_as(topic, None, messages).await
    }

    /// Sends messages to a topic in one transaction, once: the same request with the same key is given the same answer for
    /// a while, and stores nothing again. So it is asked again for up to ten seconds when nobody answers.
    ///
    /// # Errors
    /// As [`Remote::publish`].
    pub async fn publish_once(
        &self,
        topic: &str,
        key: &str,
        messages: &[SendEnvelope],
    ) -> Result<PublishResponse, RemoteError> {
        self.publish_as(topic, Some(key), messages).await
    }

    async fn publish_as(
        &self,
        topic: &str,
        key: Option<&str>,
        messages: &[SendEnvelope],
    ) -> Result<PublishResponse, RemoteError> {
        let lines: Bytes = lines_of(messages)?.into();
        let route = RequestPath::new("/v1/topics").data(topic).word("messages");
        let call = self.post(route).header("idempotency-key", key)?.bytes(NDJSON, lines)?;
        if key.is_some() { call.repeatable().answer().await } else { call.answer().await }
    }
}
