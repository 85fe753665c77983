//! The topics of an emulator's `Config.json`, with their subscriptions and rules.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use crate::api::WireDuration;
use crate::clock::whole_millis;
use crate::error::Misuse;
use crate::header::PropertyValue;
use crate::id::QueueName;
use crate::id::SubscriptionName;
use crate::limits;
use crate::queue::QueueOptions;
use crate::service_bus::config_properties::PropertiesForm;
use crate::service_bus::config_properties::shorter_life;
use crate::service_bus::config_properties::span;
use crate::service_bus::description::Description;
use crate::service_bus::slashed::queue_name;
use crate::topic::Correlation;
use crate::topic::Filter;
use crate::topic::Rule;

/// A topic that a file declares.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConfiguredTopic {
    pub(crate) name: QueueName,
    pub(crate) description: Description,
    pub(crate) subscriptions: Vec<ConfiguredSubscription>,
}

/// A subscription that a file declares.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConfiguredSubscription {
    pub(crate) name: SubscriptionName,
    pub(crate) options: QueueOptions,
    pub(crate) description: Description,
    pub(crate) rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TopicForm {
    pub(crate) name: String,
    #[serde(default)]
    properties: TopicPropertiesForm,
    #[serde(default)]
    subscriptions: Vec<ConfigSubscriptionForm>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct TopicPropertiesForm {
    default_message_time_to_live: Option<String>,
    duplicate_detection_history_time_window: Option<WireDuration>,
    requires_duplicate_detection: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ConfigSubscriptionForm {
    name: String,
    #[serde(default)]
    properties: PropertiesForm,
    rules: Option<Vec<ConfigRuleForm>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ConfigRuleForm {
    name: String,
    #[serde(default)]
    properties: RulePropertiesForm,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct RulePropertiesForm {
    filter_type: Option<String>,
    correlation_filter: Option<ConfigCorrelationForm>,
    sql_filter: Option<SqlForm>,
    action: Option<SqlForm>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SqlForm {
    sql_expression: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct ConfigCorrelationForm {
    content_type: Option<String>,
    correlation_id: Option<String>,
    #[serde(alias = "Subject")]
    label: Option<String>,
    message_id: Option<String>,
    reply_to: Option<String>,
    reply_to_session_id: Option<String>,
    session_id: Option<String>,
    to: Option<String>,
    properties: BTreeMap<String, serde_json::Value>,
}

impl TopicForm {
    pub(crate) fn configured(mut self) -> Result<ConfiguredTopic, Misuse> {
        let name = QueueName::new(queue_name(&self.name))?;
        let mut subscriptions = Vec::new();
        for subscription in std::mem::take(&mut self.subscriptions) {
            let about = format!("subscription {} of topic {}", subscription.name, self.name);
            let made = subscription.configured(&self.properties);
            subscriptions
                .push(made.map_err(|misuse| Misuse::new("subscriptions", format!("{about}: {misuse}")))?);
        }
        Ok(ConfiguredTopic { name, description: self.properties.description(), subscriptions })
    }
}

impl TopicPropertiesForm {
    fn time_to_live(&self) -> Option<Duration> {
        self.default_message_time_to_live.as_deref().and_then(span)
    }

    fn duplicate_window(&self) -> Option<Duration> {
        let window = self.duplicate_detection_history_time_window.map(|window| window.0);
        let window = window.unwrap_or(limits::SERVICE_BUS_DUPLICATE_WINDOW);
        self.requires_duplicate_detection.then_some(window)
    }

    fn description(&self) -> Description {
        Description {
            time_to_live_ms: self.time_to_live().map(whole_millis),
            duplicate_window_ms: self.duplicate_window().map(whole_millis),
            ..Description::default()
        }
    }
}

impl ConfigSubscriptionForm {
    fn configured(self, topic: &TopicPropertiesForm) -> Result<ConfiguredSubscription, Misuse> {
        self.properties.check()?;
        let mut options = self.properties.options();
        let own = options.time_to_live;
        options.time_to_live = shorter_life(own, topic.time_to_live());
        options.duplicate_window = topic.duplicate_window().or(options.duplicate_window);
        options.check()?;
        let rules = match self.rules {
            None => vec![Rule::everything()],
            Some(rules) if rules.is_empty() => vec![Rule::everything()],
            Some(rules) => rules.into_iter().map(ConfigRuleForm::rule).collect::<Result<_, Misuse>>()?,
        };
        Ok(ConfiguredSubscription {
            name: SubscriptionName::new(&self.name)?,
            options,
            description: Description {
                time_to_live_ms: own.map(whole_millis),
                ..self.properties.description()
            },
            rules,
        })
    }
}

impl ConfigRuleForm {
    fn rule(self) -> Result<Rule, Misuse> {
        let RulePropertiesForm { filter_type, correlation_filter, sql_filter, action } = self.properties;
        let filter_type = filter_type.map(|text| text.to_ascii_lowercase());
        let filter = match (filter_type.as_deref(), correlation_filter, sql_filter) {
            (Some("true" | "truefilter"), ..) => Filter::True,
            (Some("false" | "falsefilter"), ..) => Filter::False,
            (Some("correlation" | "correlationfilter") | None, Some(form), _) => {
                Filter::Correlation(form.correlation())
            }
            (Some("sql" | "sqlfilter") | None, _, Some(form)) => Filter::sql(form.sql_expression),
            (None, None, None) => Filter::True,
            (Some(other), ..) => {
                let problem = format!("of rule {} is {other:?} without such a filter", self.name);
                return Err(Misuse::new("FilterType", problem));
            }
        };
        let mut rule = Rule::new(self.name, filter);
        if let Some(action) = action.filter(|action| !action.sql_expression.trim().is_empty()) {
            rule = rule.action(action.sql_expression);
        }
        rule.check()?;
        Ok(rule)
    }
}

impl ConfigCorrelationForm {
    fn correlation(self) -> Correlation {
        let mut correlation = Correlation {
            content_type: self.content_type,
            correlation_id: self.correlation_id,
            subject: self.label,
            message_id: self.message_id,
            reply_to: self.reply_to,
            reply_to_workflow_id: self.reply_to_session_id,
            workflow_id: self.session_id,
            to: self.to,
            ..Correlation::default()
        };
        for (name, value) in self.properties {
            correlation.properties.insert(name, property(value));
        }
        correlation
    }
}

/// A value of JSON; what properties have no word for is its text.
fn property(value: serde_json::Value) -> PropertyValue {
    match value {
        serde_json::Value::Bool(truth) => PropertyValue::Boolean(truth),
        serde_json::Value::String(text) => PropertyValue::Text(text),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => PropertyValue::Integer(number),
            (None, Some(number)) => PropertyValue::Float(number),
            (None, None) => PropertyValue::Text(number.to_string()),
        },
        other => PropertyValue::Text(other.to_string()),
    }
}
