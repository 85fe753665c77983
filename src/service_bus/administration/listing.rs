//! Lists, a page at a time.

use http::Uri;

use crate::engine::QueueView;
use crate::engine::TopicView;
use crate::limits;
use crate::service_bus::administration::atom::AtomFeed;
use crate::service_bus::administration::entities::AdminCall;
use crate::service_bus::administration::entities::AdminSubscription;
use crate::service_bus::administration::host::query;
use crate::service_bus::administration::properties;
use crate::service_bus::administration::queues;
use crate::service_bus::administration::refusal::AdminRefusal;
use crate::service_bus::administration::refusal::AdminResult;
use crate::service_bus::administration::rule_xml;
use crate::service_bus::administration::subscriptions;
use crate::service_bus::administration::topics;
use crate::service_bus::slashed::subscriptions_path;

/// Which part of a list is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListPage {
    skip: usize,
    top: usize,
}

impl ListPage {
    pub(crate) fn of(uri: &Uri) -> Result<ListPage, AdminRefusal> {
        let number = |name: &str, default: usize| match query(uri, name) {
            None => Ok(default),
            Some(text) => {
                text.parse().map_err(|_| AdminRefusal::bad(format!("{name} is {text:?}, not a whole number")))
            }
        };
        let top: usize = number("$top", limits::SERVICE_BUS_PAGE_MAX)?;
        Ok(ListPage { skip: number("$skip", 0)?, top: top.clamp(1, limits::SERVICE_BUS_PAGE_MAX) })
    }

    /// Where the next page is, if there is more than this one.
    fn next(self, call: &AdminCall<'_>, path: &str, count: usize) -> Option<String> {
        let after = self.skip.saturating_add(self.top);
        (count > after).then(|| format!("{}&$skip={after}&$top={}", call.caller.url(path), self.top))
    }

    fn cut<T>(self, all: &[T]) -> &[T] {
        let from = self.skip.min(all.len());
        &all[from..all.len().min(from.saturating_add(self.top))]
    }
}

pub(crate) async fn all_queues(call: &AdminCall<'_>, page: ListPage) -> AdminResult {
    let queues: Vec<QueueView> = every_queue(call).await?;
    let path = "$Resources/queues";
    let next = page.next(call, path, queues.len());
    Ok(AtomFeed::answer((call.caller, path), call.shared.clock.now(), next, |feed| {
        for view in page.cut(&queues) {
            let known = call.known(view);
            feed.entry(&queues::entry(view, &known), |xml| known.write(xml, properties::QUEUE));
        }
    }))
}

/// All queues that who asks may know of: no subscriptions, and none of the daemon's own.
async fn every_queue(call: &AdminCall<'_>) -> Result<Vec<QueueView>, AdminRefusal> {
    let mut queues = call.shared.client.all_queues().await?;
    queues.retain(|QueueView { name, .. }| {
        name.subscription().is_none() && (call.shared.is_open)(name) && call.access.reaches(name.as_str())
    });
    Ok(queues)
}

pub(crate) async fn all_topics(call: &AdminCall<'_>, page: ListPage) -> AdminResult {
    let mut all = call.shared.client.topics(None, limits::TOPICS_MAX).await?;
    all.retain(|topic| call.access.reaches(topic.name.as_str()));
    let path = "$Resources/topics";
    let next = page.next(call, path, all.len());
    Ok(AtomFeed::answer((call.caller, path), call.shared.clock.now(), next, |feed| {
        for topic in page.cut(&all) {
            let known = call.known_topic(topic);
            feed.entry(&topics::entry(topic, &known), |xml| known.write(xml, properties::TOPIC));
        }
    }))
}

pub(crate) async fn all_subscriptions(
    call: &AdminCall<'_>,
    topic: &TopicView,
    page: ListPage,
) -> AdminResult {
    let mut views = Vec::new();
    for subscription in page.cut(&topic.subscriptions) {
        let queue = call.shared.client.queue(&subscription.queue)?;
        // One that was deleted since the topic was looked at is left out.
        views.extend(queue.view_if_any().await?.map(|view| (&subscription.name, view)));
    }
    let path = subscriptions_path(&topic.name);
    let next = page.next(call, &path, topic.subscriptions.len());
    Ok(AtomFeed::answer((call.caller, &path), call.shared.clock.now(), next, |feed| {
        for (name, view) in &views {
            let known = call.known(view);
            let entry = subscriptions::entry(&topic.name, name, &known);
            feed.entry(&entry, |xml| known.write(xml, properties::SUBSCRIPTION));
        }
    }))
}

pub(crate) async fn all_rules(call: &AdminCall<'_>, of: &AdminSubscription, page: ListPage) -> AdminResult {
    let mut rules = of.rules(call).await?;
    rules.sort_by_cached_key(|rule| rule.name().to_ascii_lowercase());
    let description = call.shared.descriptions.of(&of.queue.name, (&of.queue).into());
    let path = of.rules_path();
    let next = page.next(call, &path, rules.len());
    Ok(AtomFeed::answer((call.caller, &path), call.shared.clock.now(), next, |feed| {
        for rule in page.cut(&rules) {
            let settings = description.rules.get(rule.name());
            feed.entry(&of.rule_entry(rule), |xml| rule_xml::write(xml, (rule, settings), of.created_at()));
        }
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http_body_util::BodyExt;

    use super::*;
    use crate::inbound::live_value::LiveValue;
    use crate::intake::Intake;
    use crate::service_bus::administration::authorized::AdminAccess;
    use crate::service_bus::administration::host::Caller;
    use crate::service_bus::meters::Meters;
    use crate::service_bus::shared::EndpointState;
    use crate::service_bus::shared::Owners;
    use crate::topic::Rule;

    #[tokio::test]
    async fn a_subscription_that_goes_while_its_topic_is_listed_is_left_out() {
        let (engine, clock) = crate::testing::engine().await.unwrap();
        let (intake, keys) = (Intake::new(engine.client().clone()), LiveValue::default());
        let shared =
            EndpointState::new(intake, Owners::nobody(), Arc::new(clock), Meters::default(), keys, false);
        let topic = engine.client().create_topic("t").await.unwrap();
        for name in ["gone", "kept"] {
            topic.subscribe(name, Default::default(), [Rule::everything()]).await.unwrap();
        }
        let seen = topic.view().await.unwrap().expect("it is there");
        engine.client().delete_queue("t/subscriptions/gone").await.unwrap();
        let caller = Caller::of(&http::Request::new(()).into_parts().0);
        let access = AdminAccess::Local;
        let call = AdminCall { shared: &shared, access: &access, caller: &caller, is_change: false };
        let listed = all_subscriptions(&call, &seen, ListPage { skip: 0, top: 9 }).await.unwrap();
        let listed = listed.into_body().collect().await.unwrap().to_bytes();
        let listed = String::from_utf8(listed.to_vec()).unwrap();
        assert!(listed.contains("t/Subscriptions/kept") && !listed.contains("gone"), "{listed}");
        engine.close().await;
    }
}
