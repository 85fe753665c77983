//! Pages of other origins: what the rules of the service let them do, in headers for their browsers.

use axum::response::Response;
use http::HeaderMap;
use http::HeaderValue;
use http::StatusCode;
use http::header;
use http::request::Parts;

use crate::inbound::browser::Foreign;
use crate::inbound::browser::check_no_browser;
use crate::storage_queue::answer::empty;
use crate::storage_queue::answer::headed;
use crate::storage_queue::properties::CorsRule;
use crate::storage_queue::properties::cors_rules;
use crate::storage_queue::refusal::StorageRefusal;
use crate::storage_queue::refusal::StorageResult;
use crate::storage_queue::request::QueueRequest;
use crate::storage_queue::shared::SharedStorage;

/// Answers a browser that asks before it sends what a page of another origin wants; it asks without a signature.
pub(crate) async fn preflight(shared: &SharedStorage, parts: &Parts) -> StorageResult {
    let text = |name: header::HeaderName| parts.headers.get(name)?.to_str().ok();
    let request = text(header::ORIGIN).zip(text(header::ACCESS_CONTROL_REQUEST_METHOD));
    let Some((origin, method)) = request else {
        let message = "OPTIONS needs the headers Origin and Access-Control-Request-Method";
        return Err(StorageRefusal::bad("InvalidHeaderValue", message));
    };
    let wanted = text(header::ACCESS_CONTROL_REQUEST_HEADERS).unwrap_or_default();
    let rules = cors_rules(shared.client()).await?;
    let rule = rules.iter().find(|rule| rule.allows(origin, method) && rule.takes_headers(wanted));
    let Some(rule) = rule else {
        let message = "no CORS rule of the service allows this origin, method and headers";
        return Err(StorageRefusal::forbidden("CorsPreflightFailure", message));
    };
    let mut headers = rule.admission(origin);
    headers.push((header::ACCESS_CONTROL_ALLOW_METHODS, method.to_owned()));
    headers.push((header::ACCESS_CONTROL_MAX_AGE, rule.seconds.to_string()));
    if !wanted.is_empty() {
        headers.push((header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.to_owned()));
    }
    Ok(headed(empty(StatusCode::OK), headers))
}

/// Refuses what a page of a browser asks where there are no keys: what it shows is then signed with a key that everybody
/// knows, so a page of another origin needs a rule of the service besides, and no page may have a name of its own for this machine.
pub(crate) async fn check_page(shared: &SharedStorage, request: &QueueRequest) -> Result<(), StorageRefusal> {
    if shared.keys.load().is_some() {
        return Ok(());
    }
    let checked = check_no_browser(&request.parts);
    if checked == Err(Foreign::Page) && request.signed().is_signed() {
        let origin = request.parts.headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
        let rules = cors_rules(shared.client()).await?;
        if origin
            .is_some_and(|origin| rules.iter().any(|rule| rule.allows(origin, request.method().as_str())))
        {
            return Ok(());
        }
    }
    Ok(checked?)
}

/// Lets a page of another origin see an answer, if the first rule for its origin and method says so. The request itself was
/// judged before.
pub(crate) async fn admit(
    shared: &SharedStorage,
    (method, origin): (&str, Option<HeaderValue>),
    response: Response,
) -> Response {
    let Some(origin) = origin.as_ref().and_then(|origin| origin.to_str().ok()) else { return response };
    let Ok(rules) = cors_rules(shared.client()).await else { return response };
    let response = match rules.iter().any(|rule| !rule.is_for_all()) {
        true => headed(response, [(header::VARY, "Origin".to_owned())]),
        false => response,
    };
    let Some(rule) = rules.iter().find(|rule| rule.allows(origin, method)) else { return response };
    let exposed = rule.exposed(response.headers());
    let mut headers = rule.admission(origin);
    if !exposed.is_empty() {
        headers.push((header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed.join(",")));
    }
    headed(response, headers)
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// Whether a header is one of a list, in which `x-ms-meta-*` stands for all that begin so.
fn is_listed(list: &str, header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    parts(list).any(|listed| match listed.to_ascii_lowercase().strip_suffix('*') {
        Some(prefix) => header.starts_with(prefix),
        None => listed.eq_ignore_ascii_case(&header),
    })
}

impl CorsRule {
    fn is_for_all(&self) -> bool {
        parts(&self.origins).any(|origin| origin == "*")
    }

    fn allows(&self, origin: &str, method: &str) -> bool {
        let is_origin = self.is_for_all() || parts(&self.origins).any(|listed| listed == origin);
        is_origin && parts(&self.methods).any(|listed| listed == method)
    }

    fn takes_headers(&self, wanted: &str) -> bool {
        parts(wanted).all(|header| is_listed(&self.allowed_headers, header))
    }

    fn admission(&self, origin: &str) -> Vec<(header::HeaderName, String)> {
        match self.is_for_all() {
            true => vec![(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*".to_owned())],
            false => vec![
                (header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.to_owned()),
                (header::ACCESS_CONTROL_ALLOW_CREDENTIALS, "true".to_owned()),
                (header::VARY, "Origin".to_owned()),
            ],
        }
    }

    /// The headers of an answer that the page may read.
    fn exposed(&self, headers: &HeaderMap) -> Vec<String> {
        let names = headers.keys().map(header::HeaderName::as_str);
        names.filter(|name| is_listed(&self.exposed_headers, name)).map(str::to_owned).collect()
    }
}
