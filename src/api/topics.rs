//! Requests and answers about topics.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::api::message::WireProperty;
use crate::api::message::read_properties;
use crate::api::message::show_properties;
use crate::api::messages::ReceiptView;
use crate::api::options::OptionsEnvelope;
use crate::api::time::WireTime;
use crate::engine::Receipt;
use crate::engine::SubscriptionView;
use crate::engine::TopicView;
use crate::error::Misuse;
use crate::id::QueueName;
use crate::topic::Correlation;
use crate::topic::DEFAULT_RULE;
use crate::topic::Filter;
use crate::topic::Rule;

/// A page of topics.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct TopicPage {
    /// The topics, in order of name.
    pub topics: Vec<TopicEnvelope>,
    /// Where the next page begins after; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// A topic.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TopicEnvelope {
    /// Its name.
    pub name: String,
    /// When it was created.
    pub created_at: WireTime,
    /// Its subscriptions, in order of name.
    pub subscriptions: Vec<SubscriptionEnvelope>,
}

/// A topic to make: it has no options, each subscription has its own.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TopicRequest {}

/// A subscription of a topic.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SubscriptionEnvelope {
    /// Its name.
    pub name: String,
    /// The queue that it is: every request for a queue can name it.
    pub queue: String,
    /// Its rules, in the order in which they were added.
    pub rules: Vec<RuleEnvelope>,
}

/// A subscription to make or change.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SubscriptionRequest {
    /// Which messages it gets; every message if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<RuleEnvelope>>,
    /// The options of its queue.
    pub options: OptionsEnvelope,
}

/// A rule of a subscription: a filter, and perhaps an action. Without a filter it matches every message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RuleEnvelope {
    /// Its name: `$Default` if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A condition in SQL, such as `amount > 100 AND sys.Subject LIKE 'order%'`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// What `@name` in the condition means.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, WireProperty>,
    /// Values that a message has to have, all of them; instead of a condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation: Option<CorrelationEnvelope>,
    /// What is changed of the copy: `SET name = value` and `REMOVE name`, with `;` between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
}

/// Values that a message has to have, all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CorrelationEnvelope {
    /// The correlation ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The message ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Whom it is for, as an AMQP sender says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Where an answer is expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// The subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The workflow ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// The workflow an answer belongs to, as an AMQP sender says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to_workflow_id: Option<String>,
    /// MIME type of the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The sender's own properties.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, WireProperty>,
}

/// What became of a message that was sent to a topic.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PublishResponse {
    /// The copies, subscription by subscription; none when nobody wanted it.
    pub copies: Vec<CopyView>,
}

/// A copy of a message.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CopyView {
    /// The queue of the subscription.
    pub queue: String,
    /// What became of it.
    pub receipt: ReceiptView,
}

impl PublishResponse {
    /// Shows what became of copies.
    pub fn show(copies: Vec<(QueueName, Receipt)>) -> PublishResponse {
        let show = |(queue, receipt): (QueueName, Receipt)| CopyView {
            queue: queue.to_string(),
            receipt: ReceiptView::show(receipt),
        };
        PublishResponse { copies: copies.into_iter().map(show).collect() }
    }
}

impl TopicEnvelope {
    /// Shows a topic.
    pub fn show(view: &TopicView) -> TopicEnvelope {
        TopicEnvelope {
            name: view.name.to_string(),
            created_at: WireTime(view.created_at),
            subscriptions: view.subscriptions.iter().map(SubscriptionEnvelope::show).collect(),
        }
    }
}

impl SubscriptionEnvelope {
    /// Shows a subscription.
    pub fn show(view: &SubscriptionView) -> SubscriptionEnvelope {
        SubscriptionEnvelope {
            name: view.name.to_string(),
            queue: view.queue.to_string(),
            rules: view.rules.iter().map(RuleEnvelope::show).collect(),
        }
    }
}

impl SubscriptionRequest {
    /// The rules: one for every message, if none are given.
    ///
    /// # Errors
    /// [`Misuse`] with what does not go together in one.
    pub fn read_rules(&self) -> Result<Vec<Rule>, Misuse> {
        match &self.rules {
            None => Ok(vec![Rule::everything()]),
            Some(rules) => rules.iter().cloned().map(RuleEnvelope::read).collect(),
        }
    }
}

impl RuleEnvelope {
    /// The rule. Its filter and its action are checked where it is added.
    ///
    /// # Errors
    /// [`Misuse`] with what does not go together.
    pub fn read(self) -> Result<Rule, Misuse> {
        let parameters = read_properties(self.parameters)?;
        let filter = match (self.filter, self.correlation) {
            (Some(_), Some(_)) => return Err(Misuse::new("filter", "is given together with a correlation")),
            (None, _) if !parameters.is_empty() => {
                return Err(Misuse::new("parameters", "go with a filter"));
            }
            (None, Some(correlation)) => Filter::Correlation(correlation.read()?),
            (None, None) => Filter::True,
            (Some(filter), None) => match filter.trim() {
                "TRUE" => Filter::True,
                "FALSE" => Filter::False,
                _ => Filter::Sql { expression: filter, parameters },
            },
        };
        let rule = Rule::new(self.name.unwrap_or_else(|| DEFAULT_RULE.to_owned()), filter);
        Ok(match self.action {
            Some(action) => rule.action(action),
            None => rule,
        })
    }

    /// Shows a rule.
    pub fn show(rule: &Rule) -> RuleEnvelope {
        let mut shown = RuleEnvelope {
            name: Some(rule.name().to_owned()),
            action: rule.changes().map(str::to_owned),
            ..RuleEnvelope::default()
        };
        match rule.filter() {
            Filter::True => shown.filter = Some("TRUE".to_owned()),
            Filter::False => shown.filter = Some("FALSE".to_owned()),
            Filter::Correlation(correlation) => {
                shown.correlation = Some(CorrelationEnvelope::show(correlation));
            }
            Filter::Sql { expression, parameters } => {
                shown.filter = Some(expression.clone());
                shown.parameters = show_properties(parameters);
            }
        }
        shown
    }
}

impl CorrelationEnvelope {
    fn read(self) -> Result<Correlation, Misuse> {
        Ok(Correlation {
            correlation_id: self.correlation_id,
            message_id: self.message_id,
            to: self.to,
            reply_to: self.reply_to,
            subject: self.subject,
            workflow_id: self.workflow_id,
            reply_to_workflow_id: self.reply_to_workflow_id,
            content_type: self.content_type,
            properties: read_properties(self.properties)?,
        })
    }

    fn show(correlation: &Correlation) -> CorrelationEnvelope {
        let known = correlation.clone();
        CorrelationEnvelope {
            correlation_id: known.correlation_id,
            message_id: known.message_id,
            to: known.to,
            reply_to: known.reply_to,
            subject: known.subject,
            workflow_id: known.workflow_id,
            reply_to_workflow_id: known.reply_to_workflow_id,
            content_type: known.content_type,
            properties: show_properties(&known.properties),
        }
    }
}
