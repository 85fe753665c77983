//! Whether the endpoint serves, as programs that wait for an emulator ask for it.

use std::sync::Arc;

use axum::extract::Request;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::Response;
use http::Method;
use http::StatusCode;
use http::header;

use crate::service_bus::administration;
use crate::service_bus::administration::query;
use crate::service_bus::shared::EndpointState;

/// Answers whether the engine does. A queue may have the name that is asked for: an administration client says its version.
pub(crate) async fn respond(State(shared): State<Arc<EndpointState>>, request: Request) -> Response {
    if request.method() != Method::GET || query(request.uri(), "api-version").is_some() {
        return administration::respond(&shared, request).await;
    }
    let (status, body) = match shared.client.queues(None, 1).await {
        Ok(_) => (StatusCode::OK, r#"{"status":"healthy","message":"Service is healthy."}"#),
        Err(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            r#"{"status":"unhealthy","message":"Service not available. Please try after some time."}"#,
        ),
    };
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}
