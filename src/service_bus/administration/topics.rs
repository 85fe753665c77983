//! Topics: made, changed, shown, deleted.

use axum::response::Response;
use http::StatusCode;

use crate::engine::QueueView;
use crate::engine::TopicView;
use crate::id::QueueName;
use crate::queue::QueueOptions;
use crate::service_bus::administration::atom::AtomEntry;
use crate::service_bus::administration::document;
use crate::service_bus::administration::entities::AdminCall;
use crate::service_bus::administration::fields::EntitySettings;
use crate::service_bus::administration::properties;
use crate::service_bus::administration::properties::EntityProperties;
use crate::service_bus::administration::refusal::AdminRefusal;
use crate::service_bus::administration::refusal::AdminResult;
use crate::service_bus::description::Description;

/// The element that describes a topic.
pub(crate) const ELEMENT: &str = "TopicDescription";

pub(crate) fn entry<'a>(topic: &'a TopicView, known: &EntityProperties<'_>) -> AtomEntry<'a> {
    known.entry_of(&topic.name, ELEMENT)
}

pub(crate) fn answer_with(call: &AdminCall<'_>, topic: &TopicView, status: StatusCode) -> Response {
    let known = call.known_topic(topic);
    entry(topic, &known).answer(status, call.caller, |xml| known.write(xml, properties::TOPIC))
}

pub(crate) async fn create(call: &AdminCall<'_>, name: &str, text: &str) -> AdminResult {
    let mut settings = EntitySettings::new();
    document::read(text, ELEMENT, |element| call.take(&mut settings, element))?;
    settings.remember();
    let name = QueueName::new(name)?;
    let client = call.access.acting(&call.shared.client)?;
    let topic = call.describe_while((&name, &settings), client.create_topic(&name)).await?;
    let view = topic.view().await?.ok_or_else(|| AdminRefusal::not_found("topic", name.as_str()))?;
    call.describe(&name, (&settings, Some(view.created_at))).await?;
    Ok(answer_with(call, &view, StatusCode::CREATED))
}

pub(crate) async fn change(call: &AdminCall<'_>, topic: &TopicView, text: &str) -> AdminResult {
    let before = call.settings_of_topic(topic);
    let mut settings = before.clone();
    document::read(text, ELEMENT, |element| call.take(&mut settings, element))?;
    settings.check_change(&before)?;
    let subscriptions = subscriptions(call, topic).await?;
    // Before anything is done: it is changed as a whole, or not at all.
    subscriptions.iter().try_for_each(|view| call.check_whole(view))?;
    change_subscriptions(call, subscriptions, (&before.options, &settings.options)).await?;
    settings.remember();
    call.describe(&topic.name, (&settings, Some(topic.created_at))).await?;
    Ok(answer_with(call, topic, StatusCode::OK))
}

/// The queues of a topic's subscriptions.
async fn subscriptions(call: &AdminCall<'_>, topic: &TopicView) -> Result<Vec<QueueView>, AdminRefusal> {
    let mut views = Vec::with_capacity(topic.subscriptions.len());
    for subscription in &topic.subscriptions {
        views.extend(call.shared.client.queue(&subscription.queue)?.view_if_any().await?);
    }
    Ok(views)
}

/// Gives the subscriptions of a topic what was changed of it and holds for them, but for those that a file defines.
async fn change_subscriptions(
    call: &AdminCall<'_>,
    subscriptions: Vec<QueueView>,
    (before, after): (&QueueOptions, &QueueOptions),
) -> Result<(), AdminRefusal> {
    let client = call.access.acting(&call.shared.client)?;
    for view in subscriptions.into_iter().filter(|view| call.shared.check_undefined(&view.name).is_ok()) {
        let known = call.settings(&view);
        let mut settings = known.clone();
        settings.inherit_changes(before, after);
        if settings.description != known.description {
            call.describe(&view.name, (&settings, Some(view.created_at))).await?;
        }
        if settings.options != known.options {
            client.change_queue(&view.name, settings.options).await?;
        }
    }
    Ok(())
}

pub(crate) async fn delete(call: &AdminCall<'_>, topic: &TopicView) -> Result<(), AdminRefusal> {
    for subscription in &topic.subscriptions {
        call.shared.check_undefined(&subscription.queue)?;
    }
    call.access.acting(&call.shared.client)?.delete_topic(&topic.name).await?;
    let nothing = Description::default();
    for subscription in &topic.subscriptions {
        call.shared.descriptions.describe(&subscription.queue, &nothing).await?;
    }
    Ok(call.shared.descriptions.describe(&topic.name, &nothing).await?)
}
