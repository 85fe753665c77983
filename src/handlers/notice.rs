//! Tells somebody that a workflow stands still: one JSON document to a program or an address.

use bytes::Bytes;
use http::HeaderMap;
use http::HeaderValue;
use http::header;
use serde::Serialize;

use crate::handlers::exec::Exec;
use crate::handlers::webhook::Webhook;
use crate::processor::Failure;

/// Who is notified.
pub(crate) enum Notifier {
    /// A program, which reads the document on its input.
    Exec(Exec),
    /// An address, to which it is posted, signed if there is a secret.
    Webhook(Webhook),
}

impl Notifier {
    /// Sends a document under an ID that stays the same whenever it is sent again.
    ///
    /// # Errors
    /// [`Failure`] says why it did not arrive.
    pub(crate) async fn send<T: Serialize + Sync>(&self, id: &str, document: &T) -> Result<(), Failure> {
        let mut body = serde_json::to_vec(document)?;
        match self {
            Notifier::Exec(exec) => {
                body.push(b'\n');
                exec.notify(Bytes::from(body)).await
            }
            Notifier::Webhook(webhook) => {
                let json = HeaderValue::from_static("application/json");
                let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, json)]);
                webhook.notify(id, headers, Bytes::from(body)).await
            }
        }
    }
}
