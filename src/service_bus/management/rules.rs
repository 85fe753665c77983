//! The rules of a subscription: added, removed, listed.

use crate::amqp::Map;
use crate::amqp::Value;
use crate::amqp::lookup;
use crate::api::WireTime;
use crate::engine::Topic;
use crate::header::Properties;
use crate::header::PropertyValue;
use crate::limits;
use crate::records::RecordError;
use crate::service_bus::changeable::check_rule_name;
use crate::service_bus::description::RuleSettings;
use crate::service_bus::description::TypedValue;
use crate::service_bus::entity::Entity;
use crate::service_bus::management::answer::ManagementAnswer;
use crate::service_bus::management::request::ManagementRequest;
use crate::service_bus::property;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::shared::EndpointState;
use crate::service_bus::sql_filter::sql_filter;
use crate::topic::Correlation;
use crate::topic::Filter;
use crate::topic::Rule;

/// Codes of the lists by which clients tell rules, filters and actions apart.
mod code {
    pub(super) const RULE: u64 = 0x0137_0000_0004;
    pub(super) const NO_ACTION: u64 = 0x0137_0000_0005;
    pub(super) const SQL_ACTION: u64 = 0x0137_0000_0006;
    pub(super) const SQL: u64 = 0x0013_7000_0006;
    pub(super) const TRUE: u64 = 0x0013_7000_0007;
    pub(super) const FALSE: u64 = 0x0013_7000_0008;
    pub(super) const CORRELATION: u64 = 0x0013_7000_0009;
}

/// The type of an instant, as documents name it.
const INSTANT: &str = "dateTime";

/// The version of the language of filters that clients expect.
const COMPATIBILITY: i32 = 20;

/// Adds a rule.
pub(crate) async fn add(
    shared: &EndpointState,
    entity: &Entity,
    request: &ManagementRequest,
) -> Result<ManagementAnswer, AmqpRefusal> {
    let (topic, subscription) = subscription_of(shared, entity)?;
    shared.check_undefined(entity.name())?;
    let name = rule_name(request)?;
    check_rule_name(&name)?;
    let description = request.map("rule-description")?;
    let description = description.ok_or_else(|| AmqpRefusal::argument("rule-description is missing"))?;
    let settings = RuleSettings { values: instants(description), action: None };
    let mut rule = Rule::new(name.clone(), filter(description)?);
    if let Some(action) = part(description, "sql-rule-action")? {
        let expression = text(action, "expression")?.filter(|expression| !expression.trim().is_empty());
        if let Some(expression) = expression {
            rule = rule.action(expression);
        }
    }
    // What others say of the subscription meanwhile is not overwritten.
    let _alone = shared.administering.lock().await;
    let queue = (entity.name(), entity.created_at);
    if settings != RuleSettings::default() {
        // Before the rule is added, which whoever asks again would find there.
        shared.descriptions.check_sure(queue).map_err(not_stored)?;
    }
    topic.add_rule(&subscription, rule).await?;
    let rules = topic.rules(&subscription).await?;
    shared.descriptions.describe_rule(queue, (&rules, &name), settings).await.map_err(not_stored)?;
    Ok(ManagementAnswer::done(Vec::new()))
}

/// Removes a rule.
pub(crate) async fn remove(
    shared: &EndpointState,
    entity: &Entity,
    request: &ManagementRequest,
) -> Result<ManagementAnswer, AmqpRefusal> {
    let (topic, subscription) = subscription_of(shared, entity)?;
    shared.check_undefined(entity.name())?;
    let name = rule_name(request)?;
    let _alone = shared.administering.lock().await;
    topic.remove_rule(subscription, name).await?;
    Ok(ManagementAnswer::done(Vec::new()))
}

/// Lists rules in order of name.
pub(crate) async fn list(
    shared: &EndpointState,
    entity: &Entity,
    request: &ManagementRequest,
) -> Result<ManagementAnswer, AmqpRefusal> {
    let (topic, subscription) = subscription_of(shared, entity)?;
    let (skip, top) = request.page()?;
    let mut rules = topic.rules(subscription).await?;
    rules.sort_by_cached_key(|rule| rule.name().to_ascii_lowercase());
    let description = shared.descriptions.of(entity.name(), entity.created_at);
    let described = |rule: &Rule| described(rule, description.rules.get(rule.name()));
    let shown = rules.iter().skip(skip).take(top).map(described).collect();
    // Not that there is no content, where there are none: not every client takes that for an answer.
    Ok(ManagementAnswer::done(vec![(Value::string("rules"), Value::List(shown))]))
}

fn not_stored(error: RecordError) -> AmqpRefusal {
    let condition = match error {
        RecordError::Unsure(_) => condition::SERVER_BUSY,
        _ => condition::INTERNAL,
    };
    AmqpRefusal::new(condition, error.to_string())
}

fn subscription_of(shared: &EndpointState, entity: &Entity) -> Result<(Topic, String), AmqpRefusal> {
    match entity.name().subscription() {
        Some((topic, name)) if !entity.is_dead_letters => {
            Ok((shared.client.topic(&topic)?, name.to_string()))
        }
        _ => Err(AmqpRefusal::new(condition::NOT_ALLOWED, "only subscriptions of topics have rules")),
    }
}

fn rule_name(request: &ManagementRequest) -> Result<String, AmqpRefusal> {
    let name = request.text("rule-name")?;
    name.map(str::to_owned).ok_or_else(|| AmqpRefusal::argument("rule-name is missing"))
}

fn text(entries: &[(Value, Value)], name: &str) -> Result<Option<String>, AmqpRefusal> {
    match lookup(entries, name).filter(|value| !value.is_null()) {
        None => Ok(None),
        Some(value) => property::id_text(value)
            .map(Some)
            .ok_or_else(|| AmqpRefusal::argument(format!("{name} of a rule is no text"))),
    }
}

/// A part of a rule.
fn part<'a>(entries: &'a [(Value, Value)], name: &str) -> Result<Option<&'a [(Value, Value)]>, AmqpRefusal> {
    match lookup(entries, name).filter(|value| !value.is_null()) {
        None => Ok(None),
        Some(value) => {
            let part = value.as_map();
            part.map(Some).ok_or_else(|| AmqpRefusal::argument(format!("{name} of a rule is no map")))
        }
    }
}

/// The values of a filter: one that was left out would let more messages through than its client wants.
fn values(filter: &[(Value, Value)], name: &str) -> Result<Properties, AmqpRefusal> {
    let entry = |(name, value): &(Value, Value)| {
        let known = name.as_str().map(str::to_owned).zip(property::property(value));
        known.ok_or_else(|| {
            let name: String =
                name.as_str().unwrap_or_default().chars().take(limits::FILTER_NAME_CHARS_MAX).collect();
            AmqpRefusal::argument(format!("the value of {name:?} in a rule has a type that no filter knows"))
        })
    };
    part(filter, name)?.unwrap_or_default().iter().map(entry).collect()
}

fn filter(description: &[(Value, Value)]) -> Result<Filter, AmqpRefusal> {
    if let Some(sql) = part(description, "sql-filter")? {
        let expression = text(sql, "expression")?;
        let expression =
            expression.ok_or_else(|| AmqpRefusal::argument("expression of sql-filter is missing"))?;
        return Ok(sql_filter(expression, values(sql, "parameters")?));
    }
    if let Some(given) = part(description, "correlation-filter")? {
        let correlation = Correlation {
            correlation_id: text(given, "correlation-id")?,
            message_id: text(given, "message-id")?,
            to: text(given, "to")?,
            reply_to: text(given, "reply-to")?,
            subject: text(given, "label")?,
            workflow_id: text(given, "session-id")?,
            reply_to_workflow_id: text(given, "reply-to-session-id")?,
            content_type: text(given, "content-type")?,
            properties: values(given, "properties")?,
        };
        return Ok(Filter::Correlation(correlation));
    }
    let has = |name: &str| lookup(description, name).is_some();
    match (has("true-filter"), has("false-filter")) {
        (true, _) => Ok(Filter::True),
        (_, true) => Ok(Filter::False),
        _ => Err(AmqpRefusal::argument("rule-description has no filter")),
    }
}

/// The instants among the values of a filter, which are texts here.
fn instants(description: &[(Value, Value)]) -> Vec<TypedValue> {
    let part = |filter: &str, values: &str| {
        let filter = lookup(description, filter).and_then(Value::as_map)?;
        lookup(filter, values).and_then(Value::as_map)
    };
    let values = part("correlation-filter", "properties").or_else(|| part("sql-filter", "parameters"));
    let instants = values.into_iter().flatten().filter(|(_, value)| matches!(value, Value::Timestamp(_)));
    let typed = |(name, value): &(Value, Value)| match (name.as_str(), property::property(value)) {
        (Some(name), Some(PropertyValue::Text(text))) => Some(TypedValue {
            name: name.to_owned(),
            kind: INSTANT.to_owned(),
            text: text.clone(),
            stored: text,
        }),
        _ => None,
    };
    instants.filter_map(typed).collect()
}

fn list_of(code: u64, values: Vec<Value>) -> Value {
    Value::described(Value::Ulong(code), Value::List(values))
}

/// A rule as clients read it.
fn described(rule: &Rule, settings: Option<&RuleSettings>) -> Value {
    let filter = match rule.filter() {
        Filter::True => list_of(code::TRUE, Vec::new()),
        Filter::False => list_of(code::FALSE, Vec::new()),
        Filter::Correlation(correlation) => list_of(
            code::CORRELATION,
            values_of(correlation, settings.map_or(&[], |settings| &settings.values)),
        ),
        Filter::Sql { expression, .. } => {
            list_of(code::SQL, vec![Value::from(expression.as_str()), Value::Int(COMPATIBILITY)])
        }
    };
    let action = match rule.changes() {
        None => list_of(code::NO_ACTION, Vec::new()),
        Some(action) => list_of(code::SQL_ACTION, vec![Value::from(action), Value::Int(COMPATIBILITY)]),
    };
    let rule = list_of(code::RULE, vec![filter, action, Value::from(rule.name())]);
    Value::Map(vec![(Value::string("rule-description"), rule)])
}

fn values_of(correlation: &Correlation, typed: &[TypedValue]) -> Vec<Value> {
    let fields = [
        &correlation.correlation_id,
        &correlation.message_id,
        &correlation.to,
        &correlation.reply_to,
        &correlation.subject,
        &correlation.workflow_id,
        &correlation.reply_to_workflow_id,
        &correlation.content_type,
    ];
    let text = |text: &Option<String>| text.as_deref().map_or(Value::Null, Value::from);
    let mut values: Vec<Value> = fields.into_iter().map(text).collect();
    let properties: Map = correlation
        .properties
        .iter()
        .map(|(name, value)| {
            let instant = typed.iter().find_map(|typed| instant(typed, name, value));
            (Value::from(name.as_str()), instant.unwrap_or_else(|| property::value(value)))
        })
        .collect();
    values.push(Value::Map(properties));
    values
}

/// The instant that a value was given as, if it still is that instant.
fn instant(typed: &TypedValue, name: &str, value: &PropertyValue) -> Option<Value> {
    let is_it =
        typed.kind == INSTANT && typed.name == name && *value == PropertyValue::from(typed.stored.as_str());
    let instant: WireTime = typed.stored.parse().ok().filter(|_| is_it)?;
    Some(Value::Timestamp(i64::try_from(instant.0.as_millis()).ok()?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::Engine;
    use crate::id::QueueName;
    use crate::inbound::live_value::LiveValue;
    use crate::intake::Intake;
    use crate::service_bus::address::EntityPath;
    use crate::service_bus::meters::Meters;
    use crate::service_bus::shared::Owners;

    fn with_instant() -> ManagementRequest {
        let map = |name: &'static str, value: Value| Value::Map(vec![(Value::string(name), value)]);
        let filter = map("properties", map("since", Value::Timestamp(7)));
        ManagementRequest::of(vec![
            (Value::string("rule-name"), Value::string("later")),
            (Value::string("rule-description"), map("correlation-filter", filter)),
        ])
    }

    fn named(name: &'static str) -> ManagementRequest {
        let map = |name: &'static str| Value::Map(vec![(Value::string(name), Value::Map(Vec::new()))]);
        ManagementRequest::of(vec![
            (Value::string("rule-name"), Value::string(name)),
            (Value::string("rule-description"), map("true-filter")),
        ])
    }

    /// An engine with the subscription `s` of the topic `t`, and an endpoint.
    async fn endpoint(owners: Owners) -> (Engine, EndpointState) {
        let (engine, clock) = crate::testing::engine().await.unwrap();
        let intake = Intake::new(engine.client().clone());
        let keys = LiveValue::default();
        let shared = EndpointState::new(intake, owners, Arc::new(clock), Meters::default(), keys, false);
        let topic = engine.client().create_topic("t").await.unwrap();
        topic.subscribe("s", Default::default(), vec![Rule::everything()]).await.unwrap();
        (engine, shared)
    }

    async fn subscription(shared: &EndpointState) -> Entity {
        let queue = "t/subscriptions/s".to_owned();
        shared.entity(&EntityPath { queue, is_dead_letters: false, is_transfer: false }).await.unwrap()
    }

    #[tokio::test]
    async fn the_rules_that_a_file_defines_stay_as_it_says() {
        let defined = |name: &QueueName| (name.as_str() == "t/subscriptions/s").then(|| "s.toml".to_owned());
        let (engine, shared) = endpoint(Owners { defined: Arc::new(defined), ..Owners::nobody() }).await;
        let entity = subscription(&shared).await;
        let Err(added) = add(&shared, &entity, &named("other")).await else { panic!("it is added") };
        let Err(removed) = remove(&shared, &entity, &named("$Default")).await else {
            panic!("it is removed")
        };
        for refusal in [added, removed] {
            assert_eq!(refusal.condition, condition::NOT_ALLOWED, "{refusal}");
            assert!(refusal.description.contains("s.toml"), "{refusal}");
        }
        let topic = engine.client().topic("t").unwrap();
        assert_eq!(topic.rules("s").await.unwrap(), [Rule::everything()]);
        engine.close().await;
    }

    #[tokio::test]
    async fn a_rule_whose_name_no_document_can_say_is_not_added() {
        let (engine, shared) = endpoint(Owners::nobody()).await;
        let entity = subscription(&shared).await;
        let Err(refusal) = add(&shared, &entity, &named("a\u{ffff}")).await else { panic!("it is added") };
        assert_eq!(refusal.condition, condition::ARGUMENT_ERROR, "{refusal}");
        assert!(add(&shared, &entity, &named("a")).await.is_ok());
        engine.close().await;
    }

    #[tokio::test]
    async fn a_rule_is_not_added_while_it_is_not_sure_of_which_entity_its_types_are_said() {
        let (engine, shared) = endpoint(Owners::nobody()).await;
        let topic = engine.client().topic("t").unwrap();
        let mut entity = subscription(&shared).await;
        entity.created_at.may_be_earlier = true;
        let Err(refusal) = add(&shared, &entity, &with_instant()).await else { panic!("it is added") };
        assert_eq!((refusal.condition, refusal.status()), (condition::SERVER_BUSY, 503), "{refusal}");
        assert_eq!(topic.rules("s").await.unwrap(), [Rule::everything()]);
        entity.created_at.may_be_earlier = false;
        assert!(add(&shared, &entity, &with_instant()).await.is_ok(), "asked again later");
        assert_eq!(topic.rules("s").await.unwrap().len(), 2);
        engine.close().await;
    }
}
