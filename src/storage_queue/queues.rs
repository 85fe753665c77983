//! Queues: made, deleted, and their metadata.

use axum::response::Response;
use http::StatusCode;

use crate::error::QueueError;
use crate::error::QueueRefusal;
use crate::queue::ExpiryPolicy;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::storage_queue::access::StorageAccess;
use crate::storage_queue::answer;
use crate::storage_queue::metadata::Metadata;
use crate::storage_queue::metadata::made_at;
use crate::storage_queue::policies;
use crate::storage_queue::refusal::StorageRefusal;
use crate::storage_queue::refusal::StorageResult;
use crate::storage_queue::request::QueueRequest;
use crate::storage_queue::shared::SharedStorage;

/// What a queue that is made here is like: no order, nobody gives up a message but its sender, and what has expired is
/// gone.
fn options() -> QueueOptions {
    QueueOptions {
        order: Order::None,
        delivery_count_max: u32::MAX,
        expired: ExpiryPolicy::Drop,
        ..QueueOptions::default()
    }
}

pub(crate) async fn create(
    shared: &SharedStorage,
    request: &QueueRequest,
    access: &StorageAccess,
    name: &str,
) -> StorageResult {
    let (queue, client) = (shared.queue(name)?, shared.client());
    let metadata = request.metadata()?;
    let same = |metadata_before: Metadata| match metadata_before == metadata {
        true => Ok(answer::empty(StatusCode::NO_CONTENT)),
        false => {
            let message = "there is a queue of this name with other metadata";
            Err(StorageRefusal::conflict("QueueAlreadyExists", message))
        }
    };
    let _alone = shared.changing.lock().await;
    if let Some(view) = queue.view_if_any().await? {
        return same(Metadata::load(client, name, made_at(&view)).await?);
    }
    // First its metadata: without the queue nobody sees them, and the next to make it sets them anew. Of two who make it at once
    // through different nodes, the later's stand: the other way round, what is made and not answered would stay without any.
    metadata.clone().store(client, name, None).await?;
    match access.acting(client)?.create_queue(queue.name(), options()).await {
        Ok(_) => {
            // From now on they are those of this queue, and end with it, whoever deletes it.
            if !metadata.is_empty()
                && let Some(view) = queue.view_if_any().await?
            {
                metadata.store(client, name, made_at(&view)).await?;
            }
            Ok(answer::empty(StatusCode::CREATED))
        }
        Err(QueueError::Refused(QueueRefusal::QueueExists(_))) => {
            let created_at = made_at(&queue.view().await?);
            same(Metadata::load(client, name, created_at).await?)
        }
        Err(error) => {
            if matches!(error, QueueError::Refused(_)) {
                // Nobody has made it: the next of this name would find them.
                let _ = Metadata::remove_unowned(client, name).await;
            }
            Err(error.into())
        }
    }
}

pub(crate) async fn delete(shared: &SharedStorage, access: &StorageAccess, name: &str) -> StorageResult {
    let queue = shared.queue(name)?;
    if let Some(file) = (shared.defined)(queue.name()) {
        let message = format!("the queue is defined by {file}: remove that file first");
        return Err(StorageRefusal::conflict("QueueIsDefined", message));
    }
    let _alone = shared.changing.lock().await;
    access.acting(shared.client())?.delete_queue(queue.name()).await?;
    Metadata::remove(shared.client(), name).await?;
    policies::remove(shared.client(), name).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// The metadata of a queue, and how many messages it has, hidden ones included.
pub(crate) async fn look(shared: &SharedStorage, name: &str) -> StorageResult {
    let view = shared.queue(name)?.view().await?;
    let messages = view.counts.stored() - view.counts.dead_lettered;
    let metadata = Metadata::load(shared.client(), name, made_at(&view)).await?;
    let response = answer::headed(answer::empty(StatusCode::OK), metadata.headers());
    Ok(answer::headed(response, [("x-ms-approximate-messages-count", messages.to_string())]))
}

pub(crate) async fn show(shared: &SharedStorage, request: &QueueRequest, name: &str) -> StorageResult {
    let created_at = made_at(&shared.queue(name)?.view().await?);
    request.metadata()?.store(shared.client(), name, created_at).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Removes every message, dead letters included; what another endpoint has handed out under a lock stays.
pub(crate) async fn clear(
    shared: &SharedStorage,
    access: &StorageAccess,
    name: &str,
) -> Result<Response, StorageRefusal> {
    let queue = shared.queue(name)?;
    queue.view().await?;
    let queue = access.acting(shared.client())?.queue(queue.name())?;
    queue.purge().await.map_err(|error| StorageRefusal::busy(error.to_string()))?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
