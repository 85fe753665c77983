//! Subscriptions: made with their first rule, changed, shown, deleted.

use axum::response::Response;
use http::StatusCode;

use crate::engine::QueueView;
use crate::engine::TopicView;
use crate::id::SubscriptionName;
use crate::service_bus::administration::atom::AtomEntry;
use crate::service_bus::administration::document;
use crate::service_bus::administration::entities::AdminCall;
use crate::service_bus::administration::fields::EntitySettings;
use crate::service_bus::administration::properties;
use crate::service_bus::administration::properties::EntityProperties;
use crate::service_bus::administration::refusal::AdminRefusal;
use crate::service_bus::administration::refusal::AdminResult;
use crate::service_bus::administration::rule_xml;
use crate::service_bus::description::Description;
use crate::service_bus::description::RuleSettings;
use crate::service_bus::slashed::entity_name;
use crate::topic::Rule;

/// The element that describes a subscription.
pub(crate) const ELEMENT: &str = "SubscriptionDescription";

pub(crate) fn entry<'a>(
    topic: &TopicView,
    name: &'a SubscriptionName,
    known: &EntityProperties<'_>,
) -> AtomEntry<'a> {
    AtomEntry {
        title: name.as_str().into(),
        path: format!("{}/Subscriptions/{name}", entity_name(topic.name.as_str())),
        published: known.created_at,
        updated: known.updated_at(),
        element: ELEMENT,
    }
}

pub(crate) fn answer_with(
    call: &AdminCall<'_>,
    (topic, name, queue): (&TopicView, &SubscriptionName, &QueueView),
    status: StatusCode,
) -> Response {
    let known = call.known(queue);
    entry(topic, name, &known).answer(status, call.caller, |xml| known.write(xml, properties::SUBSCRIPTION))
}

pub(crate) async fn create(call: &AdminCall<'_>, topic: &TopicView, name: &str, text: &str) -> AdminResult {
    let of_topic = call.settings_of_topic(topic);
    let mut settings = EntitySettings::new();
    let rule = document::read(text, ELEMENT, |element| {
        call.take(&mut settings, element)?;
        document::child(element, "DefaultRuleDescription").map(rule_xml::read).transpose()
    })?;
    settings.inherit(&of_topic);
    let client = call.access.acting(&call.shared.client)?;
    let made = client.topic(&topic.name)?;
    let queue = made.subscription(name)?;
    call.check_forwarding(queue.name().as_str(), &settings).await?;
    let rules = match rule {
        Some((rule, of_rule)) => {
            if of_rule != RuleSettings::default() {
                settings.description.rules.insert(rule.name().to_owned(), of_rule);
            }
            vec![rule]
        }
        None => vec![Rule::everything()],
    };
    let making = made.subscribe(name, settings.options.clone(), rules);
    let queue = call.describe_while((queue.name(), &settings), making).await?;
    let view = queue.view().await?;
    call.describe(queue.name(), (&settings, Some(view.created_at))).await?;
    Ok(answer_with(call, (topic, &SubscriptionName::new(name)?, &view), StatusCode::CREATED))
}

pub(crate) async fn change(
    call: &AdminCall<'_>,
    (topic, name, queue): (&TopicView, &SubscriptionName, &QueueView),
    text: &str,
) -> AdminResult {
    call.check_undefined(&queue.name)?;
    let before = call.settings(queue);
    let mut settings = before.clone();
    document::read(text, ELEMENT, |element| call.take(&mut settings, element))?;
    settings.options.order = before.options.order;
    settings.check_change(&before)?;
    call.check_forwarding(queue.name.as_str(), &settings).await?;
    let client = call.access.acting(&call.shared.client)?;
    client.change_queue(&queue.name, settings.options.clone()).await?;
    call.describe(&queue.name, (&settings, Some(queue.created_at))).await?;
    let view = client.queue(&queue.name)?.view().await?;
    Ok(answer_with(call, (topic, name, &view), StatusCode::OK))
}

pub(crate) async fn delete(call: &AdminCall<'_>, queue: &QueueView) -> Result<(), AdminRefusal> {
    call.check_undefined(&queue.name)?;
    call.access.acting(&call.shared.client)?.delete_queue(&queue.name).await?;
    Ok(call.shared.descriptions.describe(&queue.name, &Description::default()).await?)
}
