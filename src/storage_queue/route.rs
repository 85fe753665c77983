//! Which request is which, and what each needs.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::Response;
use http::Method;

use crate::sas::Right;
use crate::sas::Scope;
use crate::storage_queue::access::Access;
use crate::storage_queue::answer::headed;
use crate::storage_queue::asked::Asked;
use crate::storage_queue::list;
use crate::storage_queue::messages;
use crate::storage_queue::queues;
use crate::storage_queue::refused::Answer;
use crate::storage_queue::refused::Refused;
use crate::storage_queue::service;
use crate::storage_queue::shared::Shared;

pub(crate) fn router(shared: &Shared) -> Router {
    Router::new().fallback(respond).with_state(shared.clone())
}

async fn respond(State(shared): State<Shared>, request: Request) -> Response {
    let method = request.method().clone();
    let client = request.headers().get("x-ms-client-request-id").cloned();
    let (parts, body) = request.into_parts();
    let answer = match Asked::read(parts) {
        Ok(asked) => answer(&shared, &asked, body).await,
        Err(refused) => Err(refused),
    };
    let response = answer.unwrap_or_else(|refused| {
        tracing::debug!(%method, code = refused.code, "refuse a request to a storage queue");
        refused.into_response()
    });
    match client.as_ref().and_then(|id| id.to_str().ok()) {
        // So that a client finds its own request in its log.
        Some(id) => headed(response, [("x-ms-client-request-id", id.to_owned())]),
        None => response,
    }
}

async fn answer(shared: &Shared, asked: &Asked, body: Body) -> Answer {
    let access = Access::of(shared, asked)?;
    let path: Vec<&str> = asked.path.iter().map(String::as_str).collect();
    match path[..] {
        [] => of_service(shared, asked, &access).await,
        [queue] => of_queue(shared, (asked, body), &access, queue).await,
        [queue, "messages"] => of_messages(shared, (asked, body), &access, queue).await,
        [queue, "messages", id] => of_message(shared, (asked, body), &access, (queue, id)).await,
        _ => Err(Refused::no_resource()),
    }
}

async fn of_service(shared: &Shared, asked: &Asked, access: &Access) -> Answer {
    let is_service = asked.field("restype") == Some("service");
    match (asked.method(), asked.field("comp"), is_service) {
        (&Method::GET, Some("list"), false) => {
            access.check(("l", Scope::Service), Right::Listen, None)?;
            list::list(shared, asked, access).await
        }
        (&Method::GET, Some("properties"), true) => {
            access.check(("r", Scope::Service), Right::Listen, None)?;
            service::properties()
        }
        (&Method::GET, Some("stats"), true) => {
            access.check(("r", Scope::Service), Right::Listen, None)?;
            service::stats(shared)
        }
        (&Method::PUT, Some("properties"), true) => Err(Refused::not_built("set properties of the service")),
        _ => Err(Refused::no_method()),
    }
}

async fn of_queue(shared: &Shared, (asked, body): (&Asked, Body), access: &Access, queue: &str) -> Answer {
    let may = |permissions, right| access.check((permissions, Scope::Queue), right, Some(queue));
    match (asked.method(), asked.field("comp")) {
        (&Method::PUT, None) => {
            may("cw", Right::Manage)?;
            queues::create(shared, asked, access, queue).await
        }
        (&Method::DELETE, None) => {
            may("d", Right::Manage)?;
            queues::delete(shared, access, queue).await
        }
        (&Method::GET | &Method::HEAD, Some("metadata")) => {
            may("r", Right::Listen)?;
            queues::look(shared, queue).await
        }
        (&Method::PUT, Some("metadata")) => {
            may("w", Right::Manage)?;
            queues::tell(shared, asked, queue).await
        }
        (&Method::GET | &Method::HEAD, Some("acl")) => {
            access.check_whole()?;
            may("r", Right::Manage)?;
            queues::policies(shared, queue).await
        }
        (&Method::PUT, Some("acl")) => {
            access.check_whole()?;
            may("w", Right::Manage)?;
            queues::set_policies(shared, body, queue).await
        }
        _ => Err(Refused::no_method()),
    }
}

async fn of_messages(shared: &Shared, (asked, body): (&Asked, Body), access: &Access, queue: &str) -> Answer {
    let may = |permissions, right| access.check((permissions, Scope::Message), right, Some(queue));
    let is_peek = asked.field("peekonly").is_some_and(|only| only.eq_ignore_ascii_case("true"));
    match *asked.method() {
        Method::POST => {
            may("a", Right::Send)?;
            messages::put(shared, asked, body, queue).await
        }
        Method::GET if is_peek => {
            may("r", Right::Listen)?;
            messages::peek(shared, asked, queue).await
        }
        Method::GET => {
            may("p", Right::Listen)?;
            messages::get(shared, asked, queue).await
        }
        Method::DELETE => {
            may("d", Right::Manage)?;
            queues::clear(shared, access, queue).await
        }
        _ => Err(Refused::no_method()),
    }
}

async fn of_message(
    shared: &Shared,
    (asked, body): (&Asked, Body),
    access: &Access,
    named: (&str, &str),
) -> Answer {
    let may = |permissions| access.check((permissions, Scope::Message), Right::Listen, Some(named.0));
    match *asked.method() {
        Method::PUT => {
            may("u")?;
            messages::update(shared, asked, body, named).await
        }
        Method::DELETE => {
            may("p")?;
            messages::delete(shared, asked, named).await
        }
        _ => Err(Refused::no_method()),
    }
}
