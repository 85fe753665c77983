//! What the endpoint answers over HTTP, on the port of AMQP.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::extract::State;
use axum::middleware::Next;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::response::Response;
use axum::routing::any;
use axum::routing::get;
use http::StatusCode;

use crate::inbound::browser::check_no_browser;
use crate::inbound::browser::check_no_foreign_page;
use crate::service_bus::administration;
use crate::service_bus::health;
use crate::service_bus::shared::EndpointState;
use crate::service_bus::websocket;

/// Every route. Requests tell by their extensions where they come from: `Accepted`, and those of `inbound`.
pub(crate) fn router(shared: Arc<EndpointState>) -> Router {
    Router::new()
        .route("/$servicebus/websocket", get(websocket::open))
        .route("/$servicebus/websocket/", get(websocket::open))
        .route("/health", any(health::respond))
        .fallback(administer)
        .layer(from_fn_with_state(shared.clone(), refuse_pages))
        .with_state(shared)
}

/// Everything else is for the administration.
async fn administer(State(shared): State<Arc<EndpointState>>, request: Request) -> Response {
    administration::respond(&shared, request).await
}

/// Without keys, whoever is let in may do everything; a web page in a browser of theirs may not.
async fn refuse_pages(State(shared): State<Arc<EndpointState>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let checked = match (shared.keys.load(), shared.is_for_others) {
        (Some(_), _) => Ok(()),
        (None, true) => check_no_foreign_page(&parts),
        (None, false) => check_no_browser(&parts),
    };
    match checked {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(why) => (StatusCode::FORBIDDEN, why.to_string()).into_response(),
    }
}
