//! Who may come in: checked for every route before its handler runs.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::extract::RawPathParams;
use axum::extract::Request;
use axum::extract::State;
use axum::middleware::Next;
use axum::response::IntoResponse;
use axum::response::Response;
use http::HeaderMap;
use http::Method;
use http::header;
use http::request::Parts;

use crate::id::QueueName;
use crate::inbound::browser::check_no_browser;
use crate::inbound::connection::FromFileSystem;
use crate::inbound::inflow::check_length;
use crate::sas::Keys;
use crate::server::answer::HttpRefusal;
use crate::server::principal::Principal;
use crate::server::route::RequiredRight;
use crate::server::route::RightScope;
use crate::server::route::RouteFacts;
use crate::server::shared::ServerState;
use crate::server::shared::SharedServer;

/// How many bytes the body of a request may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyMax(pub(crate) usize);

/// Checks a request of a route, hands it on, and writes down how it ended.
pub(crate) async fn authorize(
    State((shared, facts)): State<(SharedServer, Arc<RouteFacts>)>,
    request: Request,
    next: Next,
) -> Response {
    let started = shared.clock.elapsed();
    let (mut parts, body) = request.into_parts();
    let queue = queue_of(&mut parts).await;
    let known = who(&shared, &facts, &parts);
    let who = known.as_ref().map_or("nobody", Principal::name).to_owned();
    let admitted = match known {
        Ok(principal) => admit(&shared, &facts, &principal, queue.as_deref(), &parts).map(|()| principal),
        Err(refused) => Err(refused),
    };
    let response = match admitted {
        Ok(principal) => {
            parts.extensions.insert(principal);
            parts.extensions.insert(BodyMax(facts.body_bytes_max));
            next.run(Request::from_parts(parts, body)).await
        }
        Err(refused) => refused.into_response(),
    };
    let ms = shared.clock.elapsed().saturating_sub(started).as_millis();
    facts.note(&who, queue.as_deref(), response.status(), u64::try_from(ms).unwrap_or(u64::MAX));
    response
}

/// Who asks, as far as the route needs to know it.
fn who(shared: &SharedServer, facts: &RouteFacts, parts: &Parts) -> Result<Principal, HttpRefusal> {
    match shared.keys.load().as_deref() {
        _ if facts.need == RequiredRight::Nothing => Ok(Principal::default()),
        Some(keys) => holder_of_key(keys, &parts.headers),
        None if parts.extensions.get::<FromFileSystem>().is_some() => Ok(Principal::default()),
        None => Ok(check_no_browser(parts).map(|()| Principal::default())?),
    }
}

fn holder_of_key(keys: &Keys, headers: &HeaderMap) -> Result<Principal, HttpRefusal> {
    let missing = || {
        HttpRefusal::new("unauthorized", "send `Authorization: Bearer` and a key of this server's keys file")
    };
    let shown = headers.get(header::AUTHORIZATION).ok_or_else(missing)?.as_bytes();
    let (scheme, key) = shown.split_at_checked(7).ok_or_else(missing)?;
    if !scheme.eq_ignore_ascii_case(b"bearer ") {
        return Err(missing());
    }
    let unknown = || HttpRefusal::new("unauthorized", "the key is not one of this server's keys file");
    Ok(Principal::with_key(keys.find(key.trim_ascii()).ok_or_else(unknown)?.clone()))
}

/// The queue or topic that a path names, if it can be read.
async fn queue_of(parts: &mut Parts) -> Option<String> {
    let params = RawPathParams::from_request_parts(parts, &()).await.ok()?;
    params.iter().find(|(name, _)| matches!(*name, "queue" | "topic")).map(|(_, queue)| queue.to_owned())
}

fn admit(
    app_state: &ServerState,
    facts: &RouteFacts,
    principal: &Principal,
    queue: Option<&str>,
    parts: &Parts,
) -> Result<(), HttpRefusal> {
    if let RequiredRight::Right(right) = facts.need {
        match facts.scope {
            RightScope::Queue => match queue {
                Some(queue) => principal.check(right, Some(queue))?,
                None => return Err(HttpRefusal::misuse("path", "is not UTF-8")),
            },
            RightScope::Each => principal.check_any(right)?,
            RightScope::All => principal.check(right, None)?,
        }
    }
    if let Some(queue) = queue {
        check_not_own(app_state, facts, queue, parts)?;
    }
    Ok(check_length(content_length(&parts.headers), facts.body_bytes_max)?)
}

/// What the daemon keeps for itself is looked at and not touched: who received or removed it would end schedules, and have the
/// rows of a source copied again or passed over. Only what somebody has held or paused goes on when it is resumed.
fn check_not_own(
    app_state: &ServerState,
    facts: &RouteFacts,
    queue: &str,
    parts: &Parts,
) -> Result<(), HttpRefusal> {
    let path = parts.uri.path();
    // What is done to many workflows says its verb in its body.
    let may_resume = path.ends_with("/resume") || path.ends_with("/operate");
    match QueueName::new(queue) {
        Ok(queue) if facts.method != Method::GET && !may_resume => refuse_own(app_state, &queue),
        _ => Ok(()),
    }
}

/// Refuses to change a queue that the daemon keeps for itself.
pub(crate) fn refuse_own(app_state: &ServerState, queue: &QueueName) -> Result<(), HttpRefusal> {
    if !app_state.host.is_own(queue) {
        return Ok(());
    }
    let detail = format!(
        "queue {queue} is the daemon's own: it keeps what it needs in it, such as its schedules; to end a schedule, \
         remove it from its definition"
    );
    Err(HttpRefusal::new("queue_is_defined", detail))
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
