//! Who may come in: checked for every route before its handler runs.

use std::sync::Arc;

use axum::extract::Request;
use axum::extract::State;
use axum::middleware::Next;
use axum::response::IntoResponse;
use axum::response::Response;
use http::HeaderMap;
use http::header;

use crate::server::answer::Refused;
use crate::server::inflow::check_length;
use crate::server::routes::Facts;
use crate::server::shared::Shared;

/// How many bytes the body of a request may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyMax(pub(crate) usize);

/// Checks a request of a route, hands it on, and writes down how it ended.
pub(crate) async fn guard(
    State((shared, facts)): State<(Shared, Arc<Facts>)>,
    mut request: Request,
    next: Next,
) -> Response {
    let started = shared.clock.elapsed();
    let response = match admit(&facts, &mut request) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    };
    let ms = shared.clock.elapsed().saturating_sub(started).as_millis();
    facts.note(response.status(), ms);
    response
}

fn admit(facts: &Facts, request: &mut Request) -> Result<(), Refused> {
    check_length(content_length(request.headers()), facts.body_bytes_max)?;
    request.extensions_mut().insert(BodyMax(facts.body_bytes_max));
    Ok(())
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
