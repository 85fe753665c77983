//! What a document says of an entity, field by field: which option of its queue each is, and how it is written.

use std::borrow::Cow;
use std::time::Duration;

use roxmltree::Node;

use crate::clock::whole_millis;
use crate::limits;
use crate::queue::ExpiryPolicy;
use crate::queue::QueueOptions;
use crate::service_bus::administration::document;
use crate::service_bus::administration::refusal::AdminRefusal;
use crate::service_bus::config_properties::service_bus_options;
use crate::service_bus::config_properties::shorter_life;
use crate::service_bus::config_properties::span;
use crate::service_bus::description::AuthorizationRule;
use crate::service_bus::description::Description;
use crate::service_bus::description::EntityStatus;
use crate::service_bus::dotnet_value;
use crate::service_bus::slashed::queue_name;

/// How clients write a time that never ends: the longest that .NET knows.
pub(crate) const FOREVER: &str = "P10675199DT2H48M5.4775807S";

/// The field that says in which window duplicates are detected.
const WINDOW: &str = "DuplicateDetectionHistoryTimeWindow";

/// Fields that are stored and returned unchanged, and their values in an entity whose maker gave none.
pub(crate) const ECHOED: &[(&str, &str)] = &[
    ("MaxSizeInMegabytes", "1024"),
    ("EnableBatchedOperations", "true"),
    ("EnablePartitioning", "false"),
    ("EnableExpress", "false"),
    ("SupportOrdering", "true"),
    ("FilteringMessagesBeforePublishing", "false"),
    ("DeadLetteringOnFilterEvaluationExceptions", "true"),
    ("EnableSubscriptionPartitioning", "false"),
];

/// The version of the API in which a field came, where not all have it.
pub(crate) fn since(field: &str) -> Option<&'static str> {
    match field {
        "MaxMessageSizeInKilobytes" => Some("2021-05"),
        "SqlFilterCount" | "CorrelationFilterCount" => Some("2024-05"),
        _ => None,
    }
}

/// The settings of an entity: those of its queue, and its description beside it.
#[derive(Clone, Debug)]
pub(crate) struct EntitySettings {
    pub(crate) options: QueueOptions,
    pub(crate) description: Description,
}

impl EntitySettings {
    /// The settings of an entity before a document sets any.
    pub(crate) fn new() -> EntitySettings {
        EntitySettings { options: service_bus_options(false), description: Description::default() }
    }

    /// Takes what a document says. What it leaves out stays, but for texts, the time to live and the deletion: a client that takes
    /// one of these away leaves it out.
    pub(crate) fn take(&mut self, element: Node<'_, '_>) -> Result<(), AdminRefusal> {
        let before = self.clone();
        self.description.forward_to = None;
        self.description.forward_dead_letters_to = None;
        self.description.user_metadata = None;
        self.description.authorization = Vec::new();
        self.options.time_to_live = None;
        self.options.delete_when_idle = None;
        self.options.delete_with_messages = false;
        let unused = self.description.duplicate_window_ms.take();
        let mut detects = None;
        for child in document::elements(element) {
            let (name, text) = (child.tag_name().name(), document::text(child));
            match name {
                "RequiresDuplicateDetection" => detects = Some(flag(name, &text)?),
                "AuthorizationRules" => self.description.authorization = authorization(child)?,
                _ => self.take_text(name, text.trim())?,
            }
        }
        let given = self.description.duplicate_window_ms.map(Duration::from_millis);
        // Documents of subscriptions have no word for the window that they have of their topic.
        let window = given.or(before.options.duplicate_window).or(unused.map(Duration::from_millis));
        let window = window.unwrap_or(limits::SERVICE_BUS_DUPLICATE_WINDOW);
        self.description.duplicate_window_ms = self.description.duplicate_window_ms.or(unused);
        let detects = detects.unwrap_or(before.options.duplicate_window.is_some());
        self.options.duplicate_window = detects.then_some(window);
        self.options.order = service_bus_options(self.description.requires_session).order;
        self.options.check()?;
        Ok(())
    }

    fn take_text(&mut self, name: &str, text: &str) -> Result<(), AdminRefusal> {
        let (options, description) = (&mut self.options, &mut self.description);
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        match name {
            "LockDuration" => options.lock = length(name, text)?.unwrap_or(limits::LOCK_MAX),
            "RequiresSession" => description.requires_session = flag(name, text)?,
            "DefaultMessageTimeToLive" => options.time_to_live = length(name, text)?,
            "DeadLetteringOnMessageExpiration" => {
                options.expired =
                    if flag(name, text)? { ExpiryPolicy::DeadLetter } else { ExpiryPolicy::Drop };
            }
            WINDOW => {
                let window = length(name, text)?.unwrap_or(limits::DURATION_MAX);
                if window > limits::SERVICE_BUS_DUPLICATE_WINDOW_MAX {
                    return Err(wrong(name, text, "7 days at most"));
                }
                description.duplicate_window_ms = u64::try_from(window.as_millis()).ok();
            }
            "MaxDeliveryCount" => options.delivery_count_max = number(name, text)?,
            "AutoDeleteOnIdle" => {
                let idle = length(name, text)?;
                if idle.is_some_and(|idle| idle < limits::SERVICE_BUS_IDLE_MIN) {
                    return Err(wrong(name, text, "5 minutes at least"));
                }
                options.delete_when_idle = idle;
                options.delete_with_messages = idle.is_some();
            }
            "MaxMessageSizeInKilobytes" => {
                let kilobytes: u32 = number(name, text)?;
                // Clients send back the 0 that a cheaper kind of namespace tells them.
                if kilobytes > 0 {
                    options.body_bytes_max = (kilobytes as usize * 1024).min(limits::BODY_BYTES_CEILING);
                }
            }
            "Status" => {
                description.status = EntityStatus::read(text)
                    .ok_or_else(|| wrong(name, text, "Active, Disabled, SendDisabled or ReceiveDisabled"))?;
            }
            "ForwardTo" => description.forward_to = some(&target(text)),
            "ForwardDeadLetteredMessagesTo" => description.forward_dead_letters_to = some(&target(text)),
            "UserMetadata" => {
                if text.chars().count() > limits::SERVICE_BUS_METADATA_CHARS_MAX {
                    let most = limits::SERVICE_BUS_METADATA_CHARS_MAX;
                    return Err(AdminRefusal::bad(format!("UserMetadata has more than {most} characters")));
                }
                description.user_metadata = some(text);
            }
            _ if ECHOED.iter().any(|(field, _)| *field == name) && !text.is_empty() => {
                let short: String = text.chars().take(limits::SERVICE_BUS_TOLD_CHARS_MAX).collect();
                description.echoed.insert(name.to_owned(), short);
            }
            // What only we can know, and what a client newer than this knows.
            _ => {}
        }
        Ok(())
    }

    /// Keeps for a topic, which has no queue, what its subscriptions are given.
    pub(crate) fn remember(&mut self) {
        // Its subscriptions have no window where it has none; it tells which one it would have.
        let unused = self.description.duplicate_window_ms.filter(|_| self.options.duplicate_window.is_none());
        match unused {
            Some(ms) => {
                let text = span_text(Some(Duration::from_millis(ms)));
                self.description.echoed.insert(WINDOW.to_owned(), text);
            }
            None => drop(self.description.echoed.remove(WINDOW)),
        }
        self.description.time_to_live_ms = self.options.time_to_live.map(whole_millis);
        self.description.duplicate_window_ms = self.options.duplicate_window.map(whole_millis);
        let largest = self.options.body_bytes_max;
        self.description.body_bytes_max = Some(largest).filter(|bytes| *bytes != limits::BODY_BYTES_MAX);
        self.description
            .echoed
            .insert("AutoDeleteOnIdle".to_owned(), span_text(self.options.delete_when_idle));
    }

    /// Says of a topic again what was kept.
    pub(crate) fn recall(&mut self) {
        let description = &self.description;
        self.options.time_to_live = description.time_to_live_ms.map(Duration::from_millis);
        self.options.duplicate_window = description.duplicate_window_ms.map(Duration::from_millis);
        self.options.body_bytes_max = description.body_bytes_max.unwrap_or(limits::BODY_BYTES_MAX);
        let idle = description.echoed.get("AutoDeleteOnIdle");
        self.options.delete_when_idle = idle.and_then(|text| span(text));
        let unused = description.echoed.get(WINDOW).and_then(|text| span(text));
        let unused = unused.and_then(|window| u64::try_from(window.as_millis()).ok());
        self.description.duplicate_window_ms = description.duplicate_window_ms.or(unused);
    }

    /// Takes from a topic what holds for a subscription that is being made.
    pub(crate) fn inherit(&mut self, topic: &QueueOptions) {
        self.live_within(topic, self.options.time_to_live);
        self.options.duplicate_window = topic.duplicate_window;
        self.options.body_bytes_max = topic.body_bytes_max;
    }

    /// Lets nothing live longer than in the topic, and keeps what a subscription says itself, for when its topic says more.
    fn live_within(&mut self, topic: &QueueOptions, own: Option<Duration>) {
        self.description.time_to_live_ms = own.map(whole_millis);
        self.options.time_to_live = shorter_life(own, topic.time_to_live);
    }

    /// The same for a subscription that is changed. A client that was told how long messages live there says that again.
    pub(crate) fn stay_within(&mut self, topic: &QueueOptions, before: &EntitySettings) {
        let given = self.options.time_to_live;
        let own = match given == before.options.time_to_live {
            true => before.own_life(&[topic]),
            false => given,
        };
        self.live_within(topic, own);
    }

    /// How long messages live in a subscription by what it says itself: its queue says so where that does not follow from any of
    /// these of its topic.
    fn own_life(&self, topics: &[&QueueOptions]) -> Option<Duration> {
        let own = self.description.time_to_live_ms.map(Duration::from_millis);
        let lasts = self.options.time_to_live;
        let follows = topics.iter().any(|topic| lasts == shorter_life(own, topic.time_to_live));
        if follows { own } else { lasts }
    }

    /// Takes for a subscription what has changed of its topic and holds for it. What is asked again was perhaps done already.
    pub(crate) fn inherit_changes(&mut self, before: &QueueOptions, after: &QueueOptions) {
        if after.time_to_live != before.time_to_live {
            self.live_within(after, self.own_life(&[before, after]));
        }
        if after.duplicate_window != before.duplicate_window {
            self.options.duplicate_window = after.duplicate_window;
        }
        if after.body_bytes_max != before.body_bytes_max {
            self.options.body_bytes_max = after.body_bytes_max;
        }
    }

    /// Refuses what Service Bus lets nobody change once an entity is there.
    pub(crate) fn check_change(&self, before: &EntitySettings) -> Result<(), AdminRefusal> {
        let fixed =
            |name: &str| AdminRefusal::bad(format!("{name} cannot be changed once the entity is there"));
        if self.description.requires_session != before.description.requires_session {
            return Err(fixed("RequiresSession"));
        }
        if self.options.duplicate_window.is_some() != before.options.duplicate_window.is_some() {
            return Err(fixed("RequiresDuplicateDetection"));
        }
        let partitions = |settings: &EntitySettings| {
            settings.description.echoed.get("EnablePartitioning").is_some_and(|text| text == "true")
        };
        match partitions(self) == partitions(before) {
            true => Ok(()),
            false => Err(fixed("EnablePartitioning")),
        }
    }
}

/// The queue or topic that a URL, or a name, means.
fn target(text: &str) -> Cow<'_, str> {
    let path =
        text.split_once("://").map_or(text, |(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
    queue_name(path.trim_matches('/'))
}

fn wrong(name: &str, text: &str, instead: &str) -> AdminRefusal {
    AdminRefusal::bad(format!("{name} is {text:?}, not {instead}"))
}

fn flag(name: &str, text: &str) -> Result<bool, AdminRefusal> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(wrong(name, text, "true or false")),
    }
}

fn number(name: &str, text: &str) -> Result<u32, AdminRefusal> {
    text.parse().map_err(|_| wrong(name, text, "a whole number"))
}

/// A span of time; none where it is longer than any.
fn length(name: &str, text: &str) -> Result<Option<Duration>, AdminRefusal> {
    let is_span = text.starts_with('P') && text.len() <= limits::SERVICE_BUS_TOLD_CHARS_MAX;
    match span(text) {
        Some(length) if is_span => Ok(Some(length)),
        None if is_span && text.contains(|c: char| c.is_ascii_digit()) && is_long(text) => Ok(None),
        _ => Err(wrong(name, text, "a span of time such as PT5M")),
    }
}

/// Whether a span that cannot be read is one of more days than anybody lives.
fn is_long(text: &str) -> bool {
    let days = text[1..].split_once('D').and_then(|(days, _)| days.parse::<u64>().ok());
    days.is_some_and(|days| days >= limits::DURATION_MAX.as_secs() / 86_400)
}

/// A span of time as .NET writes it.
pub(crate) fn span_text(length: Option<Duration>) -> String {
    let Some(length) = length else { return FOREVER.to_owned() };
    dotnet_value::span_text(i64::try_from(length.as_millis()).unwrap_or(i64::MAX).saturating_mul(10_000))
}

fn authorization(element: Node<'_, '_>) -> Result<Vec<AuthorizationRule>, AdminRefusal> {
    let rules: Vec<Node<'_, '_>> = document::elements(element).collect();
    if rules.len() > limits::SERVICE_BUS_AUTHORIZATION_RULES_MAX {
        let most = limits::SERVICE_BUS_AUTHORIZATION_RULES_MAX;
        return Err(AdminRefusal::bad(format!("AuthorizationRules are more than {most}")));
    }
    let rules = rules.into_iter().map(|rule| {
        let mut read = AuthorizationRule { kind: document::kind(rule).to_owned(), ..Default::default() };
        for child in document::elements(rule).take(limits::SERVICE_BUS_AUTHORIZATION_RULES_MAX) {
            match child.tag_name().name() {
                "Rights" => read.rights = document::elements(child).take(8).map(document::text).collect(),
                name => read.leaves.push((name.to_owned(), document::text(child))),
            }
        }
        read
    });
    Ok(rules.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_written_as_dotnet_writes_them() {
        for (millis, text) in [
            (0, "PT0S"),
            (60_000, "PT1M"),
            (14 * 86_400_000, "P14D"),
            (90_500, "PT1M30.5S"),
            (86_400_000 + 3_600_000, "P1DT1H"),
        ] {
            assert_eq!(span_text(Some(Duration::from_millis(millis))), text);
            assert_eq!(length("LockDuration", text).unwrap(), Some(Duration::from_millis(millis)));
        }
        assert_eq!(span_text(None), FOREVER);
        assert_eq!(length("AutoDeleteOnIdle", FOREVER).unwrap(), None);
        for wrong in ["", "5", "five", "P", "PT", "-PT5M", "5m"] {
            assert!(length("LockDuration", wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_change_of_a_topic_that_is_asked_again_leaves_a_subscription_what_it_says_itself() {
        let lasts = |minutes: u64| QueueOptions {
            time_to_live: Some(Duration::from_secs(minutes * 60)),
            ..QueueOptions::default()
        };
        for own in [Some(lasts(10)), None] {
            let mut settings = EntitySettings::new();
            settings.options.time_to_live = own.as_ref().and_then(|own| own.time_to_live);
            settings.inherit(&lasts(120));
            for _ in 0..2 {
                settings.inherit_changes(&lasts(120), &lasts(5));
                assert_eq!(settings.options.time_to_live, lasts(5).time_to_live);
            }
            settings.inherit_changes(&lasts(5), &lasts(60));
            assert_eq!(settings.options.time_to_live, own.unwrap_or(lasts(60)).time_to_live);
        }
    }

    #[test]
    fn an_entity_is_named_by_its_name_or_any_url() {
        for text in ["orders", "sb://host/orders", "https://host:443/orders/", "/orders"] {
            assert_eq!(target(text), "orders");
        }
        assert_eq!(target(""), "");
    }
}
