//! The table of routes, of which the router is made.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::routing::MethodFilter;
use axum::routing::MethodRouter;
use axum::routing::on;
use http::Method;
use http::StatusCode;

use crate::limits;
use crate::server::answer::Refused;
use crate::server::guard::guard;
use crate::server::receive;
use crate::server::send;
use crate::server::settle;
use crate::server::shared::Shared;

/// What is known of a route beside its handler.
pub(crate) struct Facts {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) body_bytes_max: usize,
}

impl Facts {
    /// Writes down how a request ended.
    pub(crate) fn note(&self, status: StatusCode, ms: u128) {
        let (method, path, status) = (self.method.as_str(), self.path, status.as_u16());
        match status {
            500.. => tracing::error!(method, path, status, ms, "answer a request"),
            400.. => tracing::info!(method, path, status, ms, "answer a request"),
            _ => tracing::debug!(method, path, status, ms, "answer a request"),
        }
    }
}

/// A route.
pub(crate) struct Route {
    pub(crate) facts: Facts,
    handler: MethodRouter<Shared>,
}

fn get<H: Handler<T, Shared>, T: 'static>(path: &'static str, handler: H) -> Route {
    Route::new(Method::GET, path, on(MethodFilter::GET, handler))
}

fn post<H: Handler<T, Shared>, T: 'static>(path: &'static str, handler: H) -> Route {
    Route::new(Method::POST, path, on(MethodFilter::POST, handler))
}

impl Route {
    fn new(method: Method, path: &'static str, handler: MethodRouter<Shared>) -> Route {
        Route { facts: Facts { method, path, body_bytes_max: limits::HTTP_BODY_BYTES_MAX }, handler }
    }

    /// The body may be as large as messages are.
    fn takes_messages(mut self) -> Route {
        self.facts.body_bytes_max = limits::HTTP_MESSAGES_BYTES_MAX;
        self
    }
}

/// Every route there is.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        get("/healthz", healthz),
        post("/v1/queues/{queue}/messages", send::send).takes_messages(),
        post("/v1/queues/{queue}/receive", receive::receive),
        post("/v1/queues/{queue}/deliveries/{delivery}/complete", settle::complete).takes_messages(),
    ]
}

async fn healthz() -> &'static str {
    "ok\n"
}

/// The router of all routes.
pub(crate) fn router(shared: &Shared) -> Router {
    let mut router = Router::new();
    for Route { facts, handler } in routes() {
        let (path, facts) = (facts.path, Arc::new(facts));
        let guarded = handler.layer(from_fn_with_state((shared.clone(), facts), guard));
        router = router.route(path, guarded);
    }
    router.fallback(nothing_here).method_not_allowed_fallback(not_this_method).with_state(shared.clone())
}

async fn nothing_here() -> Refused {
    Refused::new("route_not_found", "there is nothing at this address; /openapi.json lists what there is")
}

async fn not_this_method() -> Refused {
    Refused::new("method_not_allowed", "the method is not allowed here; /openapi.json lists those that are")
}
