//! Topics: each with its subscriptions, whose rules say what they get, and what waits in them.

use maud::Markup;
use maud::html;

use crate::api::CorrelationEnvelope;
use crate::api::RuleEnvelope;
use crate::api::SubscriptionEnvelope;
use crate::api::TopicEnvelope;
use crate::api::TopicPage;
use crate::api::foreign_text::visible;
use crate::api::views::QueueEnvelope;
use crate::limits;
use crate::page::answer::PageResult;
use crate::page::fields::FormFields;
use crate::page::layout::Screen;
use crate::page::layout::Tab;
use crate::page::layout::count;
use crate::page::layout::heading;
use crate::page::layout::more;
use crate::page::part::ScreenPart;
use crate::page::visitor::Visit;
use crate::page::visitor::Visitor;
use crate::remote::RequestPath;

/// The screen with all topics.
pub(crate) async fn screen(visitor: Visit, fields: FormFields) -> PageResult {
    let route = RequestPath::new("/v1/topics").query("after", fields.one("after"));
    let page: TopicPage = visitor.api.get(&route.query("limit", Some(limits::SCREEN_ROWS))).await?;
    let next = page.after.as_ref().map(|after| RequestPath::new("topics").query("after", Some(after)));
    let content = html! {
        (heading(html! { "Topics" }, count(page.topics.len(), "topics", &fields, next.is_some())))
        @if page.topics.is_empty() {
            div.empty { p.big { "No topics." }
                p.quiet { "A topic comes with a definition file, with " code { "PUT /v1/topics/{name}" }
                    ", or with a program that administers Service Bus." } }
        }
        ul.rows aria-label="Topics" { @for topic in &page.topics { (row(&visitor, topic)) } }
        (more(next.map(|route| route.as_str().to_owned())))
    };
    Ok(Screen::live(Tab::Topics, "Topics", content).into())
}

fn row(visitor: &Visitor, topic: &TopicEnvelope) -> Markup {
    let rules: usize = topic.subscriptions.iter().map(|subscription| subscription.rules.len()).sum();
    html! {
        li.row.calm {
            div.main { p.title {
                a href=(RequestPath::new("topic").query("name", Some(&topic.name)).as_str()) {
                    bdi.id { (visible(&topic.name, false)) } } } }
            dl.facts {
                div { dt { "Subscriptions" } dd { (topic.subscriptions.len()) } }
                div { dt { "Rules" } dd { (rules) } }
                div { dt { "Created" } dd { (visitor.present.show(topic.created_at)) } }
            }
        }
    }
}

/// The screen of one topic.
pub(crate) async fn detail(visitor: Visit, fields: FormFields) -> PageResult {
    let name = fields.one("name").unwrap_or_default();
    let mut topic: TopicEnvelope = visitor.api.get(&RequestPath::new("/v1/topics").data(name)).await?;
    let screen = RequestPath::new("topic").query("name", Some(name));
    let part = ScreenPart::of(&mut topic.subscriptions, |row| row.name.clone(), screen, &fields);
    let mut rows = Vec::new();
    for subscription in part.rows {
        let queue = RequestPath::new("/v1/queues").data(&subscription.queue);
        // Who may see the topic may have no right for its subscription, and one may have gone meanwhile.
        rows.push(subscribed(subscription, visitor.api.get(&queue).await.ok().as_ref()));
    }
    let content = html! {
        (heading(html! { "Topic " bdi.id { (visible(&topic.name, false)) } },
            html! { (part.all) " subscriptions" }))
        @if part.all == 0 {
            div.empty { p.big { "No subscriptions." } p.quiet { "What is sent to the topic goes nowhere." } }
        }
        ul.rows aria-label="Subscriptions" { @for row in &rows { (row) } }
        (more(part.next))
    };
    Ok(Screen::live(Tab::Topics, "Topic", content).into())
}

fn subscribed(subscription: &SubscriptionEnvelope, queue: Option<&QueueEnvelope>) -> Markup {
    let place =
        |screen: &str| RequestPath::new(screen).query("queue", Some(&subscription.queue)).as_str().to_owned();
    let dead = queue.map_or(0, |queue| queue.counts.dead_lettered);
    html! {
        li.row.calm[dead == 0].bad[dead > 0] {
            div.main {
                p.title { a href=(place("workflows")) { bdi.id { (visible(&subscription.name, false)) } } }
                @if subscription.rules.is_empty() { p.quiet { "No rules: it gets nothing." } }
                @for rule in subscription.rules.iter().take(limits::SCREEN_RULES) { (rule_of(rule)) }
                @if let Some(more) = subscription.rules.len().checked_sub(limits::SCREEN_RULES + 1) {
                    p.quiet { "and " (more + 1) " more: " code { "seriatim topics" } " has them all" }
                }
            }
            @if let Some(queue) = queue {
                dl.facts {
                    div { dt { "Waiting" } dd { (queue.counts.waiting()) } }
                    div { dt { "At work" } dd { (queue.counts.locked) } }
                    div.bad[dead > 0] { dt { "Dead" } dd { a href=(place("dead-letters")) { (dead) } } }
                    div { dt { "Completed" } dd { (queue.counts.completed) } }
                }
            }
        }
    }
}

fn rule_of(rule: &RuleEnvelope) -> Markup {
    let name = rule.name.as_deref().unwrap_or_default();
    html! {
        p { bdi.id { (visible(name, false)) } ": "
            @match (&rule.filter, &rule.correlation) {
                (Some(filter), _) => code { (visible(filter, false)) },
                (None, Some(values)) => code { (visible(&compared(values), false)) },
                (None, None) => "every message",
            }
            @if let Some(action) = &rule.action { ", then " code { (visible(action, false)) } }
        }
    }
}

/// What a filter compares, as a condition says it.
fn compared(values: &CorrelationEnvelope) -> String {
    let given = serde_json::to_value(values).unwrap_or_default();
    let fields = given.as_object().into_iter().flatten().filter(|(name, _)| *name != "properties");
    let properties = given["properties"].as_object().into_iter().flatten();
    let same = |(name, value): (&String, &serde_json::Value)| format!("{name} = {value}");
    fields.chain(properties).map(same).collect::<Vec<_>>().join(" AND ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correlation_filter_is_told_as_a_condition() {
        let mut values = CorrelationEnvelope { subject: Some("order".to_owned()), ..Default::default() };
        values.properties.insert("tenant".to_owned(), serde_json::from_str("7").unwrap());
        assert_eq!(compared(&values), "subject = \"order\" AND tenant = 7");
        assert_eq!(compared(&CorrelationEnvelope::default()), "");
    }
}
