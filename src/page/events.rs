//! What happens, as it happens: the stream of events of the API, with the session instead of a key.

use std::future::ready;

use axum::body::Body;
use futures_util::StreamExt;
use http::Method;

use crate::page::answer::PageResult;
use crate::page::fields::FormFields;
use crate::page::visitor::Visit;
use crate::remote::RequestPath;

/// The stream of events.
pub(crate) async fn stream(visitor: Visit, fields: FormFields) -> PageResult {
    let route = RequestPath::new("/v1/events").query("queue", fields.one("queue"));
    let response = visitor.api.open(Method::GET, &route, None).await;
    Ok(response.map(|body| while_here(visitor, body)).into())
}

/// A body that ends before the first part that comes when its visitor is gone. Heartbeats are parts, so that it ends soon also
/// where nothing happens.
fn while_here(visitor: Visit, body: Body) -> Body {
    Body::from_stream(body.into_data_stream().take_while(move |_| ready(visitor.is_still_here())))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use axum::Json;
    use axum::Router;
    use axum::routing::get;
    use bytes::Bytes;
    use futures_util::stream;
    use http::Request;
    use http::header;
    use http_body_util::BodyExt;
    use serde_json::json;
    use tower::ServiceExt;

    use super::*;
    use crate::clock::Timestamp;
    use crate::inbound::inflow::BodyLimits;
    use crate::inbound::timeouts::Timeouts;
    use crate::limits;
    use crate::page::routes::routes;
    use crate::page::sessions::Sessions;
    use crate::page::shared::PageState;
    use crate::testing::ManualClock;

    /// As much of the API as a visitor needs, with a stream of events that never ends.
    fn api() -> Router {
        let key = json!({ "name": "shop", "is_needed": true, "rights": ["listen"], "reaches_all": true });
        let status = json!({
            "version": "0.0.0", "state": "ready", "started_at": "2026-01-01T00:00:00Z", "definitions": 0,
            "handlers_running": 0,
        });
        let lines = || stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from_static(b":\n\n")));
        Router::new()
            .route("/v1/key", get(|| async { Json(key) }))
            .route("/v1/status", get(|| async { Json(status) }))
            .route("/v1/events", get(move || async move { Body::from_stream(lines()) }))
    }

    #[tokio::test]
    async fn a_stream_of_events_ends_with_its_session() {
        for is_signed_out in [true, false] {
            let clock = ManualClock::new(Timestamp::from_millis(0));
            let sessions = Sessions::new(Arc::new(|| Some(1)), Arc::new(clock.clone()), 7700);
            let id = sessions.begin("key").unwrap();
            let reading = Arc::new(BodyLimits::new(0, Timeouts::default()));
            let shared =
                Arc::new(PageState { api: api(), clock: Arc::new(clock.clone()), sessions, reading });
            let request = Request::get("/ui/events")
                .header(header::COOKIE, format!("seriatim_session_7700={id}"))
                .body(Body::empty());
            let response = routes(shared.clone()).oneshot(request.unwrap()).await.unwrap();
            let mut heard = response.into_body();
            assert_eq!(heard.frame().await.unwrap().unwrap().into_data().unwrap(), ":\n\n");
            match is_signed_out {
                true => shared.sessions.end(&id),
                false => clock.advance(limits::SESSION_MAX),
            }
            assert!(heard.frame().await.is_none(), "signed out: {is_signed_out}");
        }
    }
}
