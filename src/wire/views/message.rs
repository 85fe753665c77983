//! A message that is looked at, as JSON.

use serde::Deserialize;
use serde::Serialize;

use crate::wire::delivery::DeliveryEnvelope;
use crate::wire::time::WireTime;

/// A message that is looked at: what a delivery shows, and where it is in its life.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MessageView {
    /// Where it is in its life: ready, locked, early, failed, asked, scheduled or dead_lettered.
    #[serde(default)]
    pub status: String,
    /// Until when, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<WireTime>,
    /// The message it follows, in after-order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Why it was moved aside, when it is a dead letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter: Option<DeadLetterMark>,
    /// The message.
    #[serde(flatten)]
    pub message: DeliveryEnvelope,
}

/// Why a message was moved aside for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetterMark {
    /// A short reason, by which dead letters are listed.
    pub reason: String,
    /// What else was said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// When.
    pub at: WireTime,
}

/// A page of messages.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MessagePage {
    /// The messages.
    pub messages: Vec<MessageView>,
    /// Where the next page begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Messages that were taken.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DeliveryPage {
    /// The deliveries.
    pub deliveries: Vec<DeliveryEnvelope>,
}
