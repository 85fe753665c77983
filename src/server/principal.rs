//! Who asks.

use std::future::Future;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;

use crate::id::QueueName;
use crate::sas::AccessKey;
use crate::sas::Keys;
use crate::sas::Right;
use crate::server::answer::HttpRefusal;
use crate::server::shared::SharedServer;

/// Who asks: the holder of a key, or, where no keys are needed, somebody on this machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Principal {
    key: Option<Arc<AccessKey>>,
}

impl Principal {
    pub(crate) fn with_key(key: Arc<AccessKey>) -> Principal {
        Principal { key: Some(key) }
    }

    /// The same caller among other keys, if there is one: without keys it is whoever is on this machine.
    pub(crate) fn among(&self, keys: Option<&Keys>) -> Option<Principal> {
        match (&self.key, keys) {
            (None, None) => Some(Principal::default()),
            (Some(key), Some(keys)) => keys.same(key).cloned().map(Principal::with_key),
            (None, Some(_)) | (Some(_), None) => None,
        }
    }

    /// How the caller is called where it is written down who did something.
    pub(crate) fn name(&self) -> &str {
        self.key.as_ref().map_or("local", |key| key.name())
    }

    /// Whether the caller may know of a queue.
    pub(crate) fn reaches(&self, queue: &str) -> bool {
        self.key.as_ref().is_none_or(|key| key.reaches(queue))
    }

    /// Whether the caller reaches every queue.
    pub(crate) fn reaches_all(&self) -> bool {
        self.key.as_ref().is_none_or(|key| key.reaches_all())
    }

    /// Refuses a caller without a right; for a queue if one is named, else for what belongs to none.
    pub(crate) fn check(&self, right: Right, queue: Option<&str>) -> Result<(), HttpRefusal> {
        let Some(key) = &self.key else { return Ok(()) };
        let reaches = queue.map_or_else(|| key.reaches_all(), |queue| key.reaches(queue));
        if key.may(right) && reaches {
            return Ok(());
        }
        let what = queue.map_or_else(|| "all queues".to_owned(), |queue| format!("queue {queue}"));
        let detail = format!("key {} lacks the right `{}` for {what}", key.name(), right.as_str());
        Err(HttpRefusal::new("forbidden", detail))
    }

    /// Refuses a caller that has a right for no queue at all.
    pub(crate) fn check_any(&self, right: Right) -> Result<(), HttpRefusal> {
        match &self.key {
            Some(key) if !key.may(right) => {
                let detail = format!("key {} lacks the right `{}`", key.name(), right.as_str());
                Err(HttpRefusal::new("forbidden", detail))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a caller that may not send to a queue.
    pub(crate) fn check_send(&self, queue: &QueueName) -> Result<(), HttpRefusal> {
        self.check(Right::Send, Some(queue.as_str()))
    }
}

impl FromRequestParts<SharedServer> for Principal {
    type Rejection = HttpRefusal;

    fn from_request_parts(
        parts: &mut Parts,
        _: &SharedServer,
    ) -> impl Future<Output = Result<Principal, HttpRefusal>> + Send {
        let principal = parts.extensions.get::<Principal>().cloned();
        async move {
            principal.ok_or_else(|| {
                HttpRefusal::new("fault", "the request was not authorized before it was carried out")
            })
        }
    }
}
