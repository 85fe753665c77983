//! The queues and topics of an emulator's file, made when the endpoint starts.

use crate::engine::Queue;
use crate::error::TopicError;
use crate::error::TopicRefusal;
use crate::id::QueueName;
use crate::records::RecordError;
use crate::service_bus::config::Configuration;
use crate::service_bus::config::ConfiguredQueue;
use crate::service_bus::config_topics::ConfiguredSubscription;
use crate::service_bus::config_topics::ConfiguredTopic;
use crate::service_bus::creation_instant::CreationInstant;
use crate::service_bus::description::Description;
use crate::service_bus::endpoint_error::EndpointError;
use crate::service_bus::shared::EndpointState;

/// Makes the queues of a file; those that are there are given its options.
pub(crate) async fn configure(
    shared: &EndpointState,
    configuration: Configuration,
) -> Result<(), EndpointError> {
    for ConfiguredQueue { name, options, description } in configuration.queues {
        let failed = |error| EndpointError::Queue(name.to_string(), error);
        let queue = shared.client.put_queue(&name, options).await.map_err(failed)?;
        describe_queue(shared, &queue, description).await?;
    }
    for topic in configuration.topics {
        configure_topic(shared, topic).await?;
    }
    Ok(())
}

/// Makes a topic of a file. Subscriptions that are there are given its options and rules; others stay.
async fn configure_topic(shared: &EndpointState, topic: ConfiguredTopic) -> Result<(), EndpointError> {
    let failed = |error| EndpointError::Topic(topic.name.to_string(), error);
    let made = shared.client.create_topic(&topic.name).await.map_err(failed)?;
    let view = made.view().await.map_err(RecordError::from)?;
    let mut body_bytes_max = None;
    if let Some(view) = view {
        let named = (&topic.name, CreationInstant::from(&view));
        body_bytes_max = describe(shared, named, topic.description).await?.body_bytes_max;
    }
    for subscription in topic.subscriptions {
        let ConfiguredSubscription { name, mut options, description, rules } = subscription;
        options.body_bytes_max = body_bytes_max.unwrap_or(options.body_bytes_max);
        let queue = match made.subscribe(&name, options.clone(), rules.clone()).await {
            Err(TopicError::Refused(TopicRefusal::SubscriptionExists(..))) => {
                // The file has no word for it, and what is said of the topic may be in a partition that is stopped.
                options.body_bytes_max =
                    largest_body_of(&made.subscription(&name).map_err(RecordError::from)?).await?;
                made.change_subscription(&name, options, rules).await
            }
            answer => answer,
        };
        describe_queue(shared, &queue.map_err(failed)?, description).await?;
    }
    Ok(())
}

/// How large the bodies are that a queue takes.
async fn largest_body_of(queue: &Queue) -> Result<usize, EndpointError> {
    Ok(queue.options().await.map_err(RecordError::from)?.body_bytes_max)
}

async fn describe_queue(
    shared: &EndpointState,
    queue: &Queue,
    description: Description,
) -> Result<(), EndpointError> {
    let created_at = CreationInstant::from(&queue.view().await.map_err(RecordError::from)?);
    describe(shared, (queue.name(), created_at), description).await.map(drop)
}

/// Says what the file says of an entity, unless that is known; what a file has no words for stays as administration clients have
/// said it. Returns what is said of it then.
async fn describe(
    shared: &EndpointState,
    (name, created_at): (&QueueName, CreationInstant),
    file: Description,
) -> Result<Description, EndpointError> {
    let known = shared.descriptions.of(name, created_at);
    let description = Description {
        of: known.of.or(Some(created_at.at)),
        requires_session: file.requires_session,
        forward_to: file.forward_to,
        forward_dead_letters_to: file.forward_dead_letters_to,
        time_to_live_ms: file.time_to_live_ms,
        duplicate_window_ms: file.duplicate_window_ms,
        ..(*known).clone()
    };
    if *known == description {
        return Ok(description);
    }
    let described = match created_at.may_be_earlier {
        true => None,
        false => Some(shared.descriptions.describe(name, &description).await),
    };
    match described {
        Some(Err(error)) if !error.is_of_stopped_partition() => return Err(error.into()),
        Some(Ok(())) => {}
        _ => tracing::warn!(%name, "what the file says of it waits for a partition that is stopped"),
    }
    Ok(description)
}
