//! The properties of a queue or a subscription in an emulator's `Config.json`.

use std::time::Duration;

use serde::Deserialize;

use crate::api::WireDuration;
use crate::error::Misuse;
use crate::limits;
use crate::queue::Backoff;
use crate::queue::ExhaustedPolicy;
use crate::queue::ExpiryPolicy;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::description::Description;
use crate::service_bus::slashed::queue_name;

/// The properties, by the names that the file has.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct PropertiesForm {
    dead_lettering_on_message_expiration: bool,
    default_message_time_to_live: Option<String>,
    duplicate_detection_history_time_window: Option<WireDuration>,
    forward_dead_lettered_messages_to: String,
    forward_to: String,
    lock_duration: Option<WireDuration>,
    max_delivery_count: Option<u32>,
    requires_duplicate_detection: bool,
    requires_session: bool,
}

/// A time that is longer than any is no limit: .NET writes its longest span where it means none.
pub(crate) fn span(text: &str) -> Option<Duration> {
    text.parse::<WireDuration>().ok().map(|span| span.0)
}

/// How long messages live in a subscription: as it says itself, and no longer than its topic says.
pub(crate) fn shorter_life(own: Option<Duration>, of_topic: Option<Duration>) -> Option<Duration> {
    [own, of_topic].into_iter().flatten().min()
}

impl PropertiesForm {
    pub(crate) fn check(&self) -> Result<(), Misuse> {
        match self.requires_session && !self.forward_to.is_empty() {
            true => Err(Misuse::new("ForwardTo", "is not possible where RequiresSession is")),
            false => Ok(()),
        }
    }

    pub(crate) fn description(&self) -> Description {
        let some = |name: &String| (!name.is_empty()).then(|| queue_name(name).into_owned());
        Description {
            requires_session: self.requires_session,
            forward_to: some(&self.forward_to),
            forward_dead_letters_to: some(&self.forward_dead_lettered_messages_to),
            ..Description::default()
        }
    }

    pub(crate) fn options(&self) -> QueueOptions {
        let window = self.duplicate_detection_history_time_window.map(|window| window.0);
        QueueOptions {
            lock: self.lock_duration.map_or(limits::SERVICE_BUS_LOCK, |lock| lock.0),
            delivery_count_max: self.max_delivery_count.unwrap_or(limits::DELIVERY_COUNT_MAX),
            duplicate_window: self
                .requires_duplicate_detection
                .then(|| window.unwrap_or(limits::SERVICE_BUS_DUPLICATE_WINDOW)),
            time_to_live: self.default_message_time_to_live.as_deref().and_then(span),
            expired: match self.dead_lettering_on_message_expiration {
                true => ExpiryPolicy::DeadLetter,
                false => ExpiryPolicy::Drop,
            },
            ..service_bus_options(self.requires_session)
        }
    }
}

/// Options of a queue that behaves like one of Service Bus.
pub(crate) fn service_bus_options(requires_session: bool) -> QueueOptions {
    QueueOptions {
        order: if requires_session { Order::Arrival } else { Order::None },
        lock: limits::SERVICE_BUS_LOCK,
        exhausted: Some(ExhaustedPolicy::Skip),
        expired: ExpiryPolicy::Drop,
        backoff: Backoff::default(),
        keep_deferred: true,
        ..QueueOptions::default()
    }
}
