//! Reading what makes a queue a subscription.

use std::collections::BTreeSet;

use crate::definition::diagnostic::Mistakes;
use crate::definition::file_value::FileValue;
use crate::definition::form_subscription::CorrelationForm;
use crate::definition::form_subscription::RuleForm;
use crate::definition::form_subscription::SubscriptionForm;
use crate::header::PropertyValue;
use crate::id::QueueName;
use crate::id::SubscriptionName;
use crate::topic::Correlation;
use crate::topic::Filter;
use crate::topic::Rule;

/// What a definition says of the topic whose subscription its queue is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SubscriptionDefinition {
    /// The topic.
    pub topic: QueueName,
    /// The subscription.
    pub name: SubscriptionName,
    /// Which messages it gets.
    pub rules: Vec<Rule>,
}

/// Reads a subscription; `name` is its own, as the file says it, with where it stands.
pub(crate) fn subscription(
    given: &FileValue<SubscriptionForm>,
    name: (&str, Option<&std::ops::Range<usize>>),
    mistakes: &mut Mistakes,
) -> Option<SubscriptionDefinition> {
    let form = &given.value;
    let rules = rules(form, mistakes);
    let topic = form.topic.as_ref()?;
    let known = match QueueName::new(&topic.value) {
        Ok(known) if known.subscription().is_none() => Some(known),
        Ok(_) => {
            mistakes.add(&topic.span, "topic is the name of a subscription".to_owned());
            None
        }
        Err(misuse) => {
            mistakes.add(&topic.span, format!("topic: {misuse}"));
            None
        }
    };
    let own = SubscriptionName::new(name.0);
    if let Err(misuse) = &own {
        mistakes.add(name.1.unwrap_or(&given.span), misuse.to_string());
    }
    Some(SubscriptionDefinition { topic: known?, name: own.ok()?, rules })
}

fn rules(form: &SubscriptionForm, mistakes: &mut Mistakes) -> Vec<Rule> {
    if let Some(filter) = &form.filter {
        if !form.rule.is_empty() {
            mistakes.add(&filter.span, "a filter is given together with rules".to_owned());
        }
        let rule = Rule::new(crate::topic::DEFAULT_RULE, Filter::sql(&filter.value));
        return checked(rule, &filter.span, mistakes).into_iter().collect();
    }
    if form.rule.is_empty() {
        return vec![Rule::everything()];
    }
    let mut names = BTreeSet::new();
    let mut rules = Vec::new();
    for given in &form.rule {
        if let Some(rule) = rule(given, mistakes) {
            if !names.insert(rule.name().to_owned()) {
                mistakes.add(&given.span, format!("the rule `{}` is there already", rule.name()));
            }
            rules.push(rule);
        }
    }
    rules
}

fn rule(given: &FileValue<RuleForm>, mistakes: &mut Mistakes) -> Option<Rule> {
    let RuleForm { name, filter, correlation, action } = &given.value;
    let filter = match (filter, correlation) {
        (Some(_), Some(correlation)) => {
            mistakes.add(&correlation.span, "a correlation is given together with a filter".to_owned());
            return None;
        }
        (Some(filter), None) => Filter::sql(&filter.value),
        (None, Some(given)) => Filter::Correlation(correlation_of(given, mistakes)?),
        (None, None) => Filter::True,
    };
    let mut rule = Rule::new(&name.as_ref()?.value, filter);
    if let Some(action) = action {
        rule = rule.action(&action.value);
    }
    checked(rule, &given.span, mistakes)
}

fn checked(rule: Rule, span: &std::ops::Range<usize>, mistakes: &mut Mistakes) -> Option<Rule> {
    match rule.check() {
        Ok(()) => Some(rule),
        Err(misuse) => {
            mistakes.add(span, misuse.to_string());
            None
        }
    }
}

fn correlation_of(given: &FileValue<CorrelationForm>, mistakes: &mut Mistakes) -> Option<Correlation> {
    let form = given.value.clone();
    let text = |given: Option<FileValue<String>>| given.map(|given| given.value);
    let mut correlation = Correlation {
        correlation_id: text(form.correlation_id),
        message_id: text(form.message_id),
        to: text(form.to),
        reply_to: text(form.reply_to),
        subject: text(form.subject),
        workflow_id: text(form.workflow_id),
        reply_to_workflow_id: text(form.reply_to_workflow_id),
        content_type: text(form.content_type),
        ..Correlation::default()
    };
    for (name, value) in form.properties.map(|given| given.value).unwrap_or_default() {
        let value = match value {
            toml::Value::String(text) => PropertyValue::Text(text),
            toml::Value::Integer(number) => PropertyValue::Integer(number),
            toml::Value::Float(number) => PropertyValue::Float(number),
            toml::Value::Boolean(truth) => PropertyValue::Boolean(truth),
            _ => {
                mistakes.add(&given.span, format!("the property `{name}` is no text, number or boolean"));
                return None;
            }
        };
        correlation.properties.insert(name, value);
    }
    Some(correlation)
}
