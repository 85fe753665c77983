//! Topics: made, changed, told, deleted.

use axum::response::Response;
use http::StatusCode;

use crate::engine::TopicView;
use crate::id::QueueName;
use crate::service_bus::administration::atom::Entry;
use crate::service_bus::administration::document;
use crate::service_bus::administration::entities::Call;
use crate::service_bus::administration::fields::Said;
use crate::service_bus::administration::refused::Answer;
use crate::service_bus::administration::refused::Refused;
use crate::service_bus::administration::told;
use crate::service_bus::administration::told::Known;
use crate::service_bus::description::Description;
use crate::service_bus::slashed::entity_name;

/// The element that describes a topic.
pub(crate) const ELEMENT: &str = "TopicDescription";

pub(crate) fn entry<'a>(topic: &'a TopicView, known: &Known<'_>) -> Entry<'a> {
    Entry {
        title: entity_name(topic.name.as_str()),
        path: entity_name(topic.name.as_str()).into_owned(),
        published: known.created_at,
        updated: known.updated_at(),
        element: ELEMENT,
    }
}

pub(crate) fn tell(call: &Call<'_>, topic: &TopicView, status: StatusCode) -> Response {
    let known = call.known_topic(topic);
    entry(topic, &known).answer(status, call.caller, |xml| known.write(xml, told::TOPIC))
}

pub(crate) async fn create(call: &Call<'_>, name: &str, text: &str) -> Answer {
    let mut said = Said::new();
    document::read(text, ELEMENT, |element| call.take(&mut said, element))?;
    said.remember();
    let name = QueueName::new(name)?;
    let client = call.access.acting(&call.shared.client)?;
    let topic = call.describe_while((&name, &said), client.create_topic(&name)).await?;
    let view = topic.view().await?.ok_or_else(|| Refused::not_found("topic", name.as_str()))?;
    call.describe(&name, (&said, Some(view.created_at))).await?;
    Ok(tell(call, &view, StatusCode::CREATED))
}

pub(crate) async fn change(call: &Call<'_>, topic: &TopicView, text: &str) -> Answer {
    let before = call.said_of_topic(topic);
    let mut said = before.clone();
    document::read(text, ELEMENT, |element| call.take(&mut said, element))?;
    said.check_change(&before)?;
    said.remember();
    call.describe(&topic.name, (&said, Some(topic.created_at))).await?;
    Ok(tell(call, topic, StatusCode::OK))
}

pub(crate) async fn delete(call: &Call<'_>, topic: &TopicView) -> Result<(), Refused> {
    for subscription in &topic.subscriptions {
        call.check_undefined(&subscription.queue)?;
    }
    call.access.acting(&call.shared.client)?.delete_topic(&topic.name).await?;
    let nothing = Description::default();
    for subscription in &topic.subscriptions {
        call.shared.descriptions.describe(&subscription.queue, &nothing).await?;
    }
    Ok(call.shared.descriptions.describe(&topic.name, &nothing).await?)
}
