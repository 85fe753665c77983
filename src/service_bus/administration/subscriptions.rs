//! Subscriptions: made with their first rule, changed, told, deleted.

use axum::response::Response;
use http::StatusCode;

use crate::engine::QueueView;
use crate::engine::TopicView;
use crate::id::SubscriptionName;
use crate::service_bus::administration::atom::Entry;
use crate::service_bus::administration::document;
use crate::service_bus::administration::entities::Call;
use crate::service_bus::administration::fields::Said;
use crate::service_bus::administration::refused::Answer;
use crate::service_bus::administration::refused::Refused;
use crate::service_bus::administration::rule_xml;
use crate::service_bus::administration::told;
use crate::service_bus::administration::told::Known;
use crate::service_bus::description::Description;
use crate::service_bus::description::SaidRule;
use crate::service_bus::slashed::entity_name;
use crate::topic::Rule;

/// The element that describes a subscription.
pub(crate) const ELEMENT: &str = "SubscriptionDescription";

pub(crate) fn entry<'a>(topic: &TopicView, name: &'a SubscriptionName, known: &Known<'_>) -> Entry<'a> {
    Entry {
        title: name.as_str().into(),
        path: format!("{}/Subscriptions/{name}", entity_name(topic.name.as_str())),
        published: known.created_at,
        updated: known.updated_at(),
        element: ELEMENT,
    }
}

pub(crate) fn tell(
    call: &Call<'_>,
    (topic, name, queue): (&TopicView, &SubscriptionName, &QueueView),
    status: StatusCode,
) -> Response {
    let known = call.known(queue);
    entry(topic, name, &known).answer(status, call.caller, |xml| known.write(xml, told::SUBSCRIPTION))
}

pub(crate) async fn create(call: &Call<'_>, topic: &TopicView, name: &str, text: &str) -> Answer {
    let of_topic = call.said_of_topic(topic);
    let mut said = Said::new();
    let rule = document::read(text, ELEMENT, |element| {
        call.take(&mut said, element)?;
        document::child(element, "DefaultRuleDescription").map(rule_xml::read).transpose()
    })?;
    said.inherit(&of_topic);
    let client = call.access.acting(&call.shared.client)?;
    let made = client.topic(&topic.name)?;
    let queue = made.subscription(name)?;
    call.check_forwarding(queue.name().as_str(), &said).await?;
    let rules = match rule {
        Some((rule, of_rule)) => {
            if of_rule != SaidRule::default() {
                said.description.rules.insert(rule.name().to_owned(), of_rule);
            }
            vec![rule]
        }
        None => vec![Rule::everything()],
    };
    let making = made.subscribe(name, said.options.clone(), rules);
    let queue = call.describe_while((queue.name(), &said), making).await?;
    let view = queue.view().await?;
    call.describe(queue.name(), (&said, Some(view.created_at))).await?;
    Ok(tell(call, (topic, &SubscriptionName::new(name)?, &view), StatusCode::CREATED))
}

pub(crate) async fn change(
    call: &Call<'_>,
    (topic, name, queue): (&TopicView, &SubscriptionName, &QueueView),
    text: &str,
) -> Answer {
    call.check_undefined(&queue.name)?;
    let before = call.said(queue);
    let mut said = before.clone();
    document::read(text, ELEMENT, |element| call.take(&mut said, element))?;
    said.options.order = before.options.order;
    said.check_change(&before)?;
    call.check_forwarding(queue.name.as_str(), &said).await?;
    let client = call.access.acting(&call.shared.client)?;
    client.change_queue(&queue.name, said.options.clone()).await?;
    call.describe(&queue.name, (&said, Some(queue.created_at))).await?;
    let view = client.queue(&queue.name)?.view().await?;
    Ok(tell(call, (topic, name, &view), StatusCode::OK))
}

pub(crate) async fn delete(call: &Call<'_>, queue: &QueueView) -> Result<(), Refused> {
    call.check_undefined(&queue.name)?;
    call.access.acting(&call.shared.client)?.delete_queue(&queue.name).await?;
    Ok(call.shared.descriptions.describe(&queue.name, &Description::default()).await?)
}
