//! The properties of an entity as XML, in the order of the documents of Service Bus.

use std::borrow::Cow;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::Counts;
use crate::engine::TopicView;
use crate::id::QueueName;
use crate::limits;
use crate::queue::ExpiryPolicy;
use crate::service_bus::administration::atom::AtomEntry;
use crate::service_bus::administration::atom::COUNTS;
use crate::service_bus::administration::atom::INSTANCE;
use crate::service_bus::administration::atom::instant;
use crate::service_bus::administration::fields::ECHOED;
use crate::service_bus::administration::fields::EntitySettings;
use crate::service_bus::administration::fields::since;
use crate::service_bus::administration::fields::span_text;
use crate::service_bus::administration::host::Caller;
use crate::service_bus::slashed::entity_name;
use crate::topic::Filter;
use crate::topic::Rule;
use crate::xml::Xml;

pub(crate) const QUEUE: &[&str] = &[
    "LockDuration",
    "MaxSizeInMegabytes",
    "RequiresDuplicateDetection",
    "RequiresSession",
    "DefaultMessageTimeToLive",
    "DeadLetteringOnMessageExpiration",
    "DuplicateDetectionHistoryTimeWindow",
    "MaxDeliveryCount",
    "EnableBatchedOperations",
    "SizeInBytes",
    "MessageCount",
    "IsAnonymousAccessible",
    "AuthorizationRules",
    "Status",
    "ForwardTo",
    "UserMetadata",
    "CreatedAt",
    "UpdatedAt",
    "AccessedAt",
    "SupportOrdering",
    "CountDetails",
    "AutoDeleteOnIdle",
    "EnablePartitioning",
    "EntityAvailabilityStatus",
    "ForwardDeadLetteredMessagesTo",
    "EnableExpress",
    "MaxMessageSizeInKilobytes",
];

pub(crate) const TOPIC: &[&str] = &[
    "DefaultMessageTimeToLive",
    "MaxSizeInMegabytes",
    "RequiresDuplicateDetection",
    "DuplicateDetectionHistoryTimeWindow",
    "EnableBatchedOperations",
    "SizeInBytes",
    "FilteringMessagesBeforePublishing",
    "IsAnonymousAccessible",
    "AuthorizationRules",
    "Status",
    "UserMetadata",
    "CreatedAt",
    "UpdatedAt",
    "AccessedAt",
    "SupportOrdering",
    "CountDetails",
    "SubscriptionCount",
    "AutoDeleteOnIdle",
    "EnablePartitioning",
    "EntityAvailabilityStatus",
    "EnableSubscriptionPartitioning",
    "EnableExpress",
    "MaxMessageSizeInKilobytes",
    "SqlFilterCount",
    "CorrelationFilterCount",
];

pub(crate) const SUBSCRIPTION: &[&str] = &[
    "LockDuration",
    "RequiresSession",
    "DefaultMessageTimeToLive",
    "DeadLetteringOnMessageExpiration",
    "DeadLetteringOnFilterEvaluationExceptions",
    "MessageCount",
    "MaxDeliveryCount",
    "EnableBatchedOperations",
    "Status",
    "ForwardTo",
    "CreatedAt",
    "UpdatedAt",
    "AccessedAt",
    "CountDetails",
    "UserMetadata",
    "ForwardDeadLetteredMessagesTo",
    "AutoDeleteOnIdle",
    "EntityAvailabilityStatus",
];

fn is_correlation(filter: &Filter) -> bool {
    matches!(filter, Filter::Correlation(_))
}

/// An entity, and what is known of it.
pub(crate) struct EntityProperties<'a> {
    pub(crate) settings: EntitySettings,
    pub(crate) counts: Counts,
    pub(crate) created_at: Timestamp,
    /// The topic, if it is one.
    pub(crate) topic: Option<&'a TopicView>,
    pub(crate) caller: &'a Caller,
}

impl EntityProperties<'_> {
    /// The entry of a queue or topic.
    pub(crate) fn entry_of<'e>(&self, name: &'e QueueName, element: &'static str) -> AtomEntry<'e> {
        let title = entity_name(name.as_str());
        self.entry(title.clone(), title.into_owned(), element)
    }

    /// The entry of what is at a path.
    pub(crate) fn entry<'e>(
        &self,
        title: Cow<'e, str>,
        path: String,
        element: &'static str,
    ) -> AtomEntry<'e> {
        AtomEntry { title, path, published: self.created_at, updated: self.updated_at(), element }
    }

    fn updated_at(&self) -> Timestamp {
        self.settings.description.updated_at.unwrap_or(self.created_at)
    }

    /// Writes the fields of one kind of entity that the version of the client has.
    pub(crate) fn write(&self, xml: &mut Xml, fields: &[&str]) {
        let is_known = |field: &str| since(field).is_none_or(|version| self.caller.knows(version));
        for field in fields.iter().filter(|field| is_known(field)) {
            match *field {
                "CountDetails" => self.write_counts(xml),
                "AuthorizationRules" => self.write_authorization(xml),
                field => {
                    if let Some(text) = self.text(field) {
                        xml.leaf(field, &text);
                    }
                }
            }
        }
    }

    fn text(&self, field: &str) -> Option<String> {
        let (options, description) = (&self.settings.options, &self.settings.description);
        let entity = |name: &Option<String>| name.as_deref().map(|name| self.caller.entity(name));
        Some(match field {
            "LockDuration" => span_text(Some(options.lock)),
            "RequiresDuplicateDetection" => options.duplicate_window.is_some().to_string(),
            "RequiresSession" => description.requires_session.to_string(),
            "DefaultMessageTimeToLive" => span_text(options.time_to_live),
            "DeadLetteringOnMessageExpiration" => (options.expired == ExpiryPolicy::DeadLetter).to_string(),
            "DuplicateDetectionHistoryTimeWindow" => {
                let unused = description.duplicate_window_ms.map(Duration::from_millis);
                let window = options.duplicate_window.or(unused);
                span_text(Some(window.unwrap_or(limits::SERVICE_BUS_DUPLICATE_WINDOW)))
            }
            "MaxDeliveryCount" => options.delivery_count_max.min(i32::MAX as u32).to_string(),
            // Bodies are not counted; an estimate would be taken for a count.
            "SizeInBytes" => "0".to_owned(),
            "MessageCount" => self.counts.stored().to_string(),
            "IsAnonymousAccessible" => "false".to_owned(),
            "Status" => description.status.as_str().to_owned(),
            "ForwardTo" => entity(&description.forward_to)?,
            "ForwardDeadLetteredMessagesTo" => entity(&description.forward_dead_letters_to)?,
            "UserMetadata" => description.user_metadata.clone()?,
            "CreatedAt" => instant(self.created_at),
            "UpdatedAt" => instant(self.updated_at()),
            // Who came last is not written down.
            "AccessedAt" => "0001-01-01T00:00:00Z".to_owned(),
            "AutoDeleteOnIdle" => span_text(options.delete_when_idle),
            "EntityAvailabilityStatus" => "Available".to_owned(),
            "MaxMessageSizeInKilobytes" => (options.body_bytes_max / 1024).to_string(),
            "SubscriptionCount" => self.topic.map_or(0, |topic| topic.subscriptions.len()).to_string(),
            "SqlFilterCount" => self.count_filters(|filter| !is_correlation(filter)).to_string(),
            "CorrelationFilterCount" => self.count_filters(is_correlation).to_string(),
            field => {
                let default =
                    ECHOED.iter().find(|(name, _)| *name == field).map(|(_, text)| (*text).to_owned());
                description.echoed.get(field).cloned().or(default)?
            }
        })
    }

    /// Counts filters of all subscriptions of the topic; those that say everything, or nothing, are conditions in SQL there.
    fn count_filters(&self, counts: impl Fn(&Filter) -> bool) -> usize {
        let subscriptions = self.topic.iter().flat_map(|topic| &topic.subscriptions);
        let filters = subscriptions.flat_map(|subscription| &subscription.rules).map(Rule::filter);
        filters.filter(|filter| counts(filter)).count()
    }

    fn write_counts(&self, xml: &mut Xml) {
        let counts = &self.counts;
        let active = counts.stored() - counts.dead_lettered - counts.scheduled;
        xml.within_named("CountDetails", &[("xmlns:d2p1", COUNTS)], |xml| {
            xml.leaf("d2p1:ActiveMessageCount", &active.to_string());
            xml.leaf("d2p1:DeadLetterMessageCount", &counts.dead_lettered.to_string());
            xml.leaf("d2p1:ScheduledMessageCount", &counts.scheduled.to_string());
            xml.leaf("d2p1:TransferMessageCount", "0");
            xml.leaf("d2p1:TransferDeadLetterMessageCount", "0");
        });
    }

    fn write_authorization(&self, xml: &mut Xml) {
        xml.within("AuthorizationRules", |xml| {
            for rule in &self.settings.description.authorization {
                let attributes = [("xmlns:i", INSTANCE), ("i:type", rule.kind.as_str())];
                xml.within_named("AuthorizationRule", &attributes, |xml| {
                    rule.leaves.iter().for_each(|(name, text)| xml.leaf(name, text));
                    xml.within("Rights", |xml| {
                        rule.rights.iter().for_each(|right| xml.leaf("AccessRights", right));
                    });
                });
            }
        });
    }
}
