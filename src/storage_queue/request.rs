//! A request, taken apart: account, path, query and headers.

use axum::body::Body;
use bytes::Bytes;
use http::Method;
use http::request::Parts;
use percent_encoding::percent_decode_str;

use crate::inbound::connection::FromAddress;
use crate::inbound::connection::OverTls;
use crate::inbound::inflow::BodyLimits;
use crate::inbound::inflow::Inflow;
use crate::limits;
use crate::sas::StorageRequest;
use crate::storage_queue::metadata::Metadata;
use crate::storage_queue::refusal::StorageRefusal;

use std::sync::Arc;

/// A request, taken apart; its body goes its own way.
pub(crate) struct QueueRequest {
    pub(crate) parts: Parts,
    pub(crate) account: String,
    /// The parts of the path below the account.
    pub(crate) path: Vec<String>,
    query: Vec<(String, String)>,
}

impl QueueRequest {
    pub(crate) fn read(parts: Parts) -> Result<QueueRequest, StorageRefusal> {
        let mut path = Vec::new();
        for part in parts.uri.path().split('/').filter(|part| !part.is_empty()) {
            path.push(decoded(part)?);
        }
        if path.is_empty() {
            return Err(StorageRefusal::no_resource());
        }
        let account = path.remove(0);
        let mut query = Vec::new();
        for field in parts.uri.query().unwrap_or_default().split('&').filter(|field| !field.is_empty()) {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            query.push((decoded(name)?, decoded(value)?));
        }
        Ok(QueueRequest { parts, account, path, query })
    }

    /// The queue that the path names, if it names one.
    pub(crate) fn queue(&self) -> Option<&str> {
        self.path.first().map(String::as_str)
    }

    /// The message that the path names, if it names one.
    pub(crate) fn message(&self) -> Option<&str> {
        self.path.get(2).map(String::as_str)
    }

    pub(crate) fn method(&self) -> &Method {
        &self.parts.method
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let named = |(own, _): &&(String, String)| own.eq_ignore_ascii_case(name);
        self.query.iter().find(named).map(|(_, value)| value.as_str())
    }

    /// The request as it is signed.
    pub(crate) fn signed(&self) -> StorageRequest<'_> {
        StorageRequest {
            method: self.parts.method.as_str(),
            path: self.parts.uri.path(),
            account: &self.account,
            queue: self.queue(),
            query: &self.query,
            headers: &self.parts.headers,
            over_tls: self.is_over_tls(),
            peer: self.parts.extensions.get::<FromAddress>().map(|from| from.0),
        }
    }

    /// Whether nobody else can read it.
    pub(crate) fn is_over_tls(&self) -> bool {
        self.parts.extensions.get::<OverTls>().is_some()
    }

    /// The metadata that its headers give a queue.
    pub(crate) fn metadata(&self) -> Result<Metadata, StorageRefusal> {
        Metadata::read(&self.parts.headers)
    }
}

/// The body of a request.
pub(crate) async fn whole(limits: &Arc<BodyLimits>, body: Body) -> Result<Bytes, StorageRefusal> {
    let (body, _room) = Inflow::new(limits, body, limits::STORAGE_BODY_BYTES_MAX).all().await?;
    Ok(body)
}

fn decoded(text: &str) -> Result<String, StorageRefusal> {
    let decoded = percent_decode_str(text).decode_utf8();
    Ok(decoded.map_err(|_| StorageRefusal::bad("InvalidUri", "the URL is not UTF-8"))?.into_owned())
}
