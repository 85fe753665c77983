//! Subscriptions: made with their first rule, changed, shown, deleted.

use axum::response::Response;
use http::StatusCode;

use crate::engine::TopicView;
use crate::id::QueueName;
use crate::id::SubscriptionName;
use crate::service_bus::administration::atom::AtomEntry;
use crate::service_bus::administration::document;
use crate::service_bus::administration::entities::AdminCall;
use crate::service_bus::administration::entities::AdminSubscription;
use crate::service_bus::administration::fields::EntitySettings;
use crate::service_bus::administration::properties;
use crate::service_bus::administration::properties::EntityProperties;
use crate::service_bus::administration::queues;
use crate::service_bus::administration::refusal::AdminResult;
use crate::service_bus::administration::rule_xml;
use crate::service_bus::description::RuleSettings;
use crate::service_bus::slashed::subscription_path;
use crate::topic::Rule;

/// The element that describes a subscription.
pub(crate) const ELEMENT: &str = "SubscriptionDescription";

pub(crate) fn entry<'a>(
    topic: &QueueName,
    name: &'a SubscriptionName,
    known: &EntityProperties<'_>,
) -> AtomEntry<'a> {
    known.entry(name.as_str().into(), subscription_path(topic, name), ELEMENT)
}

pub(crate) async fn create(call: &AdminCall<'_>, topic: &TopicView, name: &str, text: &str) -> AdminResult {
    let of_topic = call.settings_of_topic(topic);
    let mut settings = EntitySettings::new();
    let rule = document::read(text, ELEMENT, |element| {
        call.take(&mut settings, element)?;
        document::child(element, "DefaultRuleDescription").map(rule_xml::read).transpose()
    })?;
    settings.inherit(&of_topic.options);
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
    let name = SubscriptionName::new(name)?;
    let made = AdminSubscription { topic: topic.name.clone(), name, queue: view };
    Ok(made.answer_with(call, StatusCode::CREATED))
}

impl AdminSubscription {
    pub(crate) fn answer_with(&self, call: &AdminCall<'_>, status: StatusCode) -> Response {
        let known = call.known(&self.queue);
        let entry = entry(&self.topic, &self.name, &known);
        entry.answer(status, call.caller, |xml| known.write(xml, properties::SUBSCRIPTION))
    }

    pub(crate) async fn change(mut self, call: &AdminCall<'_>, topic: &TopicView, text: &str) -> AdminResult {
        let of_topic = call.settings_of_topic(topic);
        self.queue = queues::changed(call, &self.queue, Some(&of_topic.options), (text, ELEMENT)).await?;
        Ok(self.answer_with(call, StatusCode::OK))
    }
}
