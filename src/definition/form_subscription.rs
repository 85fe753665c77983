//! The form of the part of a definition that makes its queue a subscription.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::definition::file_value::FileValue;
use crate::limits;

/// Makes the queue a subscription of a topic: it gets what is sent to the topic and matches one of its rules. Its name is then
/// topic/subscriptions/name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubscriptionForm {
    /// The topic; it is made if it is not there.
    #[schemars(required)]
    pub(crate) topic: Option<FileValue<String>>,
    /// Which messages it gets: a condition in SQL, such as amount > 100 AND sys.Subject LIKE 'order%'. Without it and without
    /// rules, every message.
    pub(crate) filter: Option<FileValue<String>>,
    /// Rules, instead of one filter: a message that one of them matches is got.
    #[serde(default)]
    #[schemars(length(max = limits::SUBSCRIPTION_RULES_MAX))]
    pub(crate) rule: Vec<FileValue<RuleForm>>,
}

/// A rule: a filter or a correlation, and perhaps an action. Without a filter it matches every message.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleForm {
    /// Its name, once in a file.
    #[schemars(required)]
    pub(crate) name: Option<FileValue<String>>,
    /// A condition in SQL.
    pub(crate) filter: Option<FileValue<String>>,
    /// Values that a message has to have, all of them; instead of a condition.
    pub(crate) correlation: Option<FileValue<CorrelationForm>>,
    /// What is changed of the copy: SET name = value and REMOVE name, with ; between them.
    pub(crate) action: Option<FileValue<String>>,
}

/// Values that a message has to have, all of them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CorrelationForm {
    /// The correlation ID.
    pub(crate) correlation_id: Option<FileValue<String>>,
    /// The message ID.
    pub(crate) message_id: Option<FileValue<String>>,
    /// Whom it is for, as an AMQP sender says it.
    pub(crate) to: Option<FileValue<String>>,
    /// Where an answer is expected.
    pub(crate) reply_to: Option<FileValue<String>>,
    /// The subject.
    pub(crate) subject: Option<FileValue<String>>,
    /// The workflow ID.
    pub(crate) workflow_id: Option<FileValue<String>>,
    /// The workflow an answer belongs to, as an AMQP sender says it.
    pub(crate) reply_to_workflow_id: Option<FileValue<String>>,
    /// MIME type of the body.
    pub(crate) content_type: Option<FileValue<String>>,
    /// The sender's own properties: text, numbers, booleans.
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub(crate) properties: Option<FileValue<BTreeMap<String, toml::Value>>>,
}
