//! Which request is answered how, once it is known what it asks for.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::Response;
use http::Method;
use http::StatusCode;
use http::header;
use tracing::Level;

use crate::sas::Right;
use crate::storage_queue::access::StorageAccess;
use crate::storage_queue::answer::headed;
use crate::storage_queue::cors;
use crate::storage_queue::list;
use crate::storage_queue::messages;
use crate::storage_queue::operation::StorageOperation;
use crate::storage_queue::policies;
use crate::storage_queue::properties;
use crate::storage_queue::queues;
use crate::storage_queue::refusal::StorageRefusal;
use crate::storage_queue::refusal::StorageResult;
use crate::storage_queue::request::QueueRequest;
use crate::storage_queue::request_id::request_id;
use crate::storage_queue::service;
use crate::storage_queue::shared::SharedStorage;

pub(crate) fn router(shared: &SharedStorage) -> Router {
    Router::new().fallback(respond).with_state(shared.clone())
}

async fn respond(State(shared): State<SharedStorage>, request: Request) -> Response {
    let method = request.method().clone();
    let client = request.headers().get("x-ms-client-request-id").cloned();
    let (parts, body) = request.into_parts();
    let origin = parts.headers.get(header::ORIGIN).cloned();
    let (operation, queue, answer) = match QueueRequest::read(parts) {
        Ok(request) if *request.method() == Method::OPTIONS => {
            (None, None, cors::preflight(&shared, &request.parts).await)
        }
        Ok(request) => {
            let operation = StorageOperation::of(&request);
            let known = operation.as_ref().ok().copied();
            let queue = request.queue().map(str::to_owned);
            (known, queue, answer(&shared, (&request, body), operation).await)
        }
        Err(refused) => (None, None, Err(refused)),
    };
    let request_id = request_id(shared.clock.now());
    note((&method, operation, queue.as_deref()), &request_id, &answer);
    let response = answer.unwrap_or_else(IntoResponse::into_response);
    let response = match operation {
        Some(_) if origin.is_some() => cors::admit(&shared, (method.as_str(), origin), response).await,
        _ => response,
    };
    shared.meters.note_answer(operation, response.status());
    let response = headed(response, [("x-ms-request-id", request_id)]);
    match client.as_ref().and_then(|id| id.to_str().ok()) {
        // So that a client finds its own request in its log.
        Some(id) => headed(response, [("x-ms-client-request-id", id.to_owned())]),
        None => response,
    }
}

/// Writes down how a request ended.
fn note(
    (method, operation, queue): (&Method, Option<StorageOperation>, Option<&str>),
    request_id: &str,
    answer: &StorageResult,
) {
    let (status, code, why) = match answer {
        Ok(response) => (response.status(), None, None),
        Err(refused) => (refused.status, Some(refused.code), Some(refused.message.as_str())),
    };
    let (level, status) = (level_of(operation, status), status.as_u16());
    let name = operation.map_or("unknown", StorageOperation::name);
    match level {
        Level::ERROR => {
            tracing::error!(%method, operation = name, queue, status, code, why, request_id, "answered a storage request");
        }
        Level::INFO => {
            tracing::info!(%method, operation = name, queue, status, code, why, request_id, "answered a storage request");
        }
        _ => {
            tracing::debug!(%method, operation = name, queue, status, code, why, request_id, "answered a storage request");
        }
    }
}

/// How loudly, as the HTTP API does: what failed, who was turned away, and what an operator has done is worth a line of its own; what
/// clients do all the time is not.
fn level_of(operation: Option<StorageOperation>, status: StatusCode) -> Level {
    let is_act =
        operation.is_some_and(|operation| operation.needs().2 == Right::Manage && !operation.only_reads());
    match status.as_u16() {
        // Of what stops everybody the log has one line, not one for each who asks.
        503 | 507 => Level::DEBUG,
        500.. => Level::ERROR,
        401 | 403 => Level::INFO,
        // Nothing is made of a queue that is there already, and who makes sure of it does so before each send.
        204 if operation == Some(StorageOperation::CreateQueue) => Level::DEBUG,
        ..=399 if is_act => Level::INFO,
        _ => Level::DEBUG,
    }
}

/// Answers whoever may ask; who they are is found out before they are told that what they ask cannot be done.
async fn answer(
    shared: &SharedStorage,
    (request, body): (&QueueRequest, Body),
    operation: Result<StorageOperation, StorageRefusal>,
) -> StorageResult {
    cors::check_page(shared, request).await?;
    let access = StorageAccess::of(shared, request).await?;
    let operation = operation?;
    if shared.signatures().account(&request.account) != request.account && !operation.only_reads() {
        return Err(StorageRefusal::read_only());
    }
    if operation.needs_whole_key() {
        access.check_whole()?;
    }
    let (permissions, scope, right) = operation.needs();
    access.check((permissions, scope), right, request.queue())?;
    act(shared, (request, body), &access, operation).await
}

async fn act(
    shared: &SharedStorage,
    (request, body): (&QueueRequest, Body),
    access: &StorageAccess,
    operation: StorageOperation,
) -> StorageResult {
    let queue = request.queue().unwrap_or_default();
    let message = (queue, request.message().unwrap_or_default());
    match operation {
        StorageOperation::ListQueues => list::list(shared, request, access).await,
        StorageOperation::GetServiceProperties => properties::show(shared).await,
        StorageOperation::SetServiceProperties => properties::set(shared, body, access).await,
        StorageOperation::GetServiceStats => service::stats(shared),
        StorageOperation::CreateQueue => queues::create(shared, request, access, queue).await,
        StorageOperation::DeleteQueue => queues::delete(shared, access, queue).await,
        StorageOperation::GetQueueMetadata => queues::look(shared, queue).await,
        StorageOperation::SetQueueMetadata => queues::show(shared, request, queue).await,
        StorageOperation::GetQueueAcl => policies::show(shared, queue).await,
        StorageOperation::SetQueueAcl => {
            policies::set(shared, body, &access.acting(shared.client())?, queue).await
        }
        StorageOperation::PutMessage => messages::put(shared, request, body, queue).await,
        StorageOperation::GetMessages => messages::get(shared, request, queue).await,
        StorageOperation::PeekMessages => messages::peek(shared, request, queue).await,
        StorageOperation::ClearMessages => queues::clear(shared, access, queue).await,
        StorageOperation::UpdateMessage => messages::update(shared, request, body, message).await,
        StorageOperation::DeleteMessage => messages::delete(shared, request, message).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_turned_away_what_fails_and_what_an_operator_does_is_in_the_log_by_default() {
        let level = |operation, status| level_of(operation, StatusCode::from_u16(status).unwrap());
        for operation in StorageOperation::ALL.map(Some).into_iter().chain([None]) {
            assert_eq!(level(operation, 403), Level::INFO, "{operation:?}");
            assert_eq!(level(operation, 500), Level::ERROR, "{operation:?}");
            for common in [400, 404, 409, 503, 507] {
                assert_eq!(level(operation, common), Level::DEBUG, "{operation:?} {common}");
            }
        }
        assert_eq!(level(Some(StorageOperation::CreateQueue), 201), Level::INFO);
        for (operation, done) in [
            (StorageOperation::CreateQueue, Level::DEBUG),
            (StorageOperation::ClearMessages, Level::INFO),
            (StorageOperation::GetQueueAcl, Level::DEBUG),
            (StorageOperation::PutMessage, Level::DEBUG),
            (StorageOperation::ListQueues, Level::DEBUG),
        ] {
            assert_eq!(level(Some(operation), 204), done, "{operation:?}");
        }
    }
}
