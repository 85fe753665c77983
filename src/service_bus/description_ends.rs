//! Descriptions of entities that are not there any more are forgotten, whoever has deleted the entity: nobody inherits them, and
//! nothing is forwarded from where nothing is.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::clock::Timestamp;
use crate::engine::EventKind;
use crate::id::QueueName;
use crate::records::RecordError;
use crate::service_bus::description::Description;
use crate::service_bus::shared::EndpointState;

/// Forgets the descriptions of entities that are deleted, until it is stopped. In a cluster another node may describe the next
/// entity of the name meanwhile, so there they stay until their names are used again.
pub(crate) async fn forget_deleted(shared: Arc<EndpointState>, stopping: CancellationToken) {
    if shared.descriptions.are_several {
        return;
    }
    let mut events = shared.client.events();
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = stopping.cancelled() => return,
        };
        let forgotten = match event {
            None => return,
            Some(Ok(event)) if event.kind == EventKind::QueueDeleted => forget(&shared, &event.queue).await,
            Some(Ok(_)) => Ok(()),
            // Which of them were deleted is not known.
            Some(Err(_)) => forget_all_deleted(&shared).await,
        };
        if let Err(error) = forgotten {
            tracing::debug!(%error, "the description of a deleted entity is kept until the next start");
        }
    }
}

/// Forgets the descriptions of all entities that are not there.
pub(crate) async fn forget_all_deleted(shared: &EndpointState) -> Result<(), RecordError> {
    if !shared.descriptions.are_several {
        for name in shared.descriptions.names() {
            forget_if_gone(shared, &name).await?;
        }
    }
    Ok(())
}

/// Forgets what is said of a queue that was deleted, and of its topic, which may have been deleted with it.
async fn forget(shared: &EndpointState, queue: &QueueName) -> Result<(), RecordError> {
    forget_if_gone(shared, queue).await?;
    match queue.subscription() {
        Some((topic, _)) => forget_if_gone(shared, &topic).await,
        None => Ok(()),
    }
}

async fn forget_if_gone(shared: &EndpointState, name: &QueueName) -> Result<(), RecordError> {
    if shared.descriptions.described(name).is_none() {
        return Ok(());
    }
    // Whoever makes an entity describes it before it is there.
    let _alone = shared.administering.lock().await;
    let Some(described) = shared.descriptions.described(name) else { return Ok(()) };
    let is_gone = match (described.of, created_at(shared, name).await?) {
        (Some(of), Some(created_at)) => of != created_at,
        (None, Some(_)) => false,
        (_, None) => true,
    };
    match is_gone {
        true => shared.descriptions.describe(name, &Description::default()).await,
        false => Ok(()),
    }
}

/// When the queue or the topic of a name was made, if there is one.
async fn created_at(shared: &EndpointState, name: &QueueName) -> Result<Option<Timestamp>, RecordError> {
    if let Some(queue) = shared.client.queue(name.as_str())?.view_if_any().await? {
        return Ok(Some(queue.created_at));
    }
    if name.subscription().is_some() {
        return Ok(None);
    }
    Ok(shared.client.topic(name)?.view().await?.map(|topic| topic.created_at))
}
