//! Who may come in: checked for every route before its handler runs.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::extract::RawPathParams;
use axum::extract::Request;
use axum::extract::State;
use axum::middleware::Next;
use axum::response::IntoResponse;
use axum::response::Response;
use http::HeaderMap;
use http::header;
use http::request::Parts;

use crate::sas::Keys;
use crate::server::answer::Refused;
use crate::server::caller::Caller;
use crate::server::inflow::check_length;
use crate::server::route::Facts;
use crate::server::route::Need;
use crate::server::route::Scope;
use crate::server::shared::Shared;

/// How many bytes the body of a request may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyMax(pub(crate) usize);

/// Set on requests that came through a socket of the file system, to which browsers have no way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FromFileSystem;

/// Checks a request of a route, hands it on, and writes down how it ended.
pub(crate) async fn guard(
    State((shared, facts)): State<(Shared, Arc<Facts>)>,
    request: Request,
    next: Next,
) -> Response {
    let started = shared.clock.elapsed();
    let (mut parts, body) = request.into_parts();
    let (caller, admitted) = match who(&shared, &facts, &parts) {
        Ok(caller) => (caller.clone(), admit(&facts, &caller, &mut parts).await),
        Err(refused) => (Caller::default(), Err(refused)),
    };
    let who = caller.name().to_owned();
    let response = match admitted {
        Ok(()) => {
            parts.extensions.insert(caller);
            parts.extensions.insert(BodyMax(facts.body_bytes_max));
            next.run(Request::from_parts(parts, body)).await
        }
        Err(refused) => refused.into_response(),
    };
    let ms = shared.clock.elapsed().saturating_sub(started).as_millis();
    facts.note(&who, response.status(), u64::try_from(ms).unwrap_or(u64::MAX));
    response
}

/// Who asks, as far as the route needs to know it.
fn who(shared: &Shared, facts: &Facts, parts: &Parts) -> Result<Caller, Refused> {
    match &shared.keys {
        _ if facts.need == Need::Nothing => Ok(Caller::default()),
        Some(keys) => holder_of_key(keys, &parts.headers),
        None if parts.extensions.get::<FromFileSystem>().is_some() => Ok(Caller::default()),
        None => check_no_browser(parts).map(|()| Caller::default()),
    }
}

fn holder_of_key(keys: &Keys, headers: &HeaderMap) -> Result<Caller, Refused> {
    let missing =
        || Refused::new("unauthorized", "send `Authorization: Bearer` and a key of this server's keys file");
    let shown = headers.get(header::AUTHORIZATION).ok_or_else(missing)?.as_bytes();
    let (scheme, key) = shown.split_at_checked(7).ok_or_else(missing)?;
    if !scheme.eq_ignore_ascii_case(b"bearer ") {
        return Err(missing());
    }
    let unknown = || Refused::new("unauthorized", "the key is not one of this server's keys file");
    Ok(Caller::with_key(keys.find(key.trim_ascii()).ok_or_else(unknown)?.clone()))
}

/// Without keys, whoever is on this machine may do everything; a web page in a browser is not. It is told by the
/// headers that browsers send, and by the name of the host: a page can point a name of its own here.
fn check_no_browser(parts: &Parts) -> Result<(), Refused> {
    let text = |name: header::HeaderName| match parts.headers.get(name) {
        None => Ok(None),
        Some(value) => value.to_str().map(Some).map_err(|_| Refused::misuse("headers", "are not ASCII")),
    };
    let host = text(header::HOST)?.or_else(|| parts.uri.authority().map(|authority| authority.as_str()));
    if host.is_some_and(|host| !is_this_machine(host)) {
        let detail = "the Host header names another machine; without keys only this machine is served";
        return Err(Refused::new("wrong_host", detail));
    }
    let foreign =
        || Refused::new("forbidden", "a page of another origin asks; without keys only its own origin may");
    if let Some(origin) = text(header::ORIGIN)? {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        if authority.is_none() || authority != host {
            return Err(foreign());
        }
    }
    match text(header::HeaderName::from_static("sec-fetch-site"))? {
        None | Some("same-origin" | "none") => Ok(()),
        Some(_) => Err(foreign()),
    }
}

/// Whether the host of a request, with its port, is a name of this machine itself.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let is_localhost = name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().strip_suffix(".localhost").is_some_and(|rest| !rest.is_empty());
    is_localhost || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

async fn admit(facts: &Facts, caller: &Caller, parts: &mut Parts) -> Result<(), Refused> {
    if let Need::Right(right) = facts.need {
        match facts.scope {
            Scope::Queue => {
                let params = RawPathParams::from_request_parts(parts, &()).await;
                let params = params.map_err(|_| Refused::misuse("path", "is not UTF-8"))?;
                let queue = params.iter().find(|(name, _)| *name == "queue").map(|(_, queue)| queue);
                caller.check(right, Some(queue.unwrap_or_default()))?;
            }
            Scope::Each => caller.check_any(right)?,
            Scope::All => caller.check(right, None)?,
        }
    }
    check_length(content_length(&parts.headers), facts.body_bytes_max)
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_this_machine() {
        for host in
            ["localhost", "LOCALHOST:7700", "127.0.0.1:7700", "127.1.2.3", "[::1]:7700", "a.localhost:1"]
        {
            assert!(is_this_machine(host), "{host}");
        }
        for host in
            ["", "example.com", "localhost.example.com:7700", "10.0.0.1", "[::2]:1", "0.0.0.0", ".localhost"]
        {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
