//! What a receiver says about which messages it wants. It is in force or refused: a receiver that asked for some and is
//! given all would take what is another's.

use crate::amqp::Attach;
use crate::amqp::Map;
use crate::amqp::Source;
use crate::amqp::Text;
use crate::amqp::Value;
use crate::amqp::lookup;
use crate::selector::Selector;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;

/// The filter by which a receiver asks for a session.
pub(crate) const SESSION_FILTER: &str = "com.microsoft:session-filter";

/// The property of a link by which a client looks at messages instead of taking them.
const PEEK_MODE: &str = "com.microsoft:peek-mode";

/// The distribution mode in which a receiver is shown messages that stay where they are.
const COPY: &str = "copy";

/// The domain of the numbers that describe registered filters: selectors, no-local, bindings.
const APACHE: u64 = 0x468c;

/// The descriptor of a selector, as a name and as a number.
const SELECTOR: (&str, u64) = ("apache.org:selector-filter:string", 0x468c_0000_0004);

/// Numbers of the standard filters of messages: by properties, by application properties, by SQL.
const STANDARD: [u64; 3] = [0x173, 0x174, 0x120];

/// Judges what a receiver wants, and leaves in its source what is in force. What only decorates is left out. Who only looks may
/// have a selector: one that takes messages would go past those that it does not want, and change their order.
pub(crate) fn judge(attach: &mut Attach) -> Result<(), AmqpRefusal> {
    let browses = browses(attach);
    let Some(source) = &mut attach.source else { return Ok(()) };
    if source.capabilities.iter().any(is_of_topics) {
        return Err(no_topic(source.address.as_deref().unwrap_or_default()));
    }
    if source.durable.is_some_and(|durable| durable > 0) || source.expiry_policy.as_deref() == Some("never") {
        return Err(refused("durable subscriptions are not implemented; receive from a queue"));
    }
    let mut others = source.filter.iter().filter(|filter| !browses || !is_selector(filter));
    if let Some(name) = others.find_map(selecting) {
        return Err(refused(format!(
            "the filter {name:?} is not implemented; without it the receiver would get messages that it has not asked for"
        )));
    }
    match source.distribution_mode.as_deref() {
        None | Some("move" | COPY) => {}
        Some(mode) => return Err(refused(format!("the distribution mode {mode:?} is not implemented"))),
    }
    source
        .filter
        .retain(|filter| filter.0.as_str() == Some(SESSION_FILTER) || (browses && is_selector(filter)));
    Ok(())
}

/// The selector among the filters of who only looks.
pub(crate) fn selector(filter: &[(Value, Value)]) -> Result<Option<Selector>, AmqpRefusal> {
    let mut selectors = filter.iter().filter(|filter| is_selector(filter));
    let Some((_, value)) = selectors.next() else { return Ok(None) };
    let wrong = |why: String| AmqpRefusal::new(condition::INVALID_FIELD, why);
    if selectors.next().is_some() {
        return Err(wrong("a receiver has one selector, and this one has several".to_owned()));
    }
    let text = value.undescribed().as_str().ok_or_else(|| wrong("a selector is text".to_owned()))?;
    Selector::parse(text).map(Some).map_err(|mistake| wrong(format!("the selector is wrong: {mistake}")))
}

fn is_selector((_, value): &(Value, Value)) -> bool {
    let Value::Described(pair) = value else { return false };
    pair.0.as_str() == Some(SELECTOR.0) || pair.0.as_u64() == Some(SELECTOR.1)
}

/// Whether a receiver looks at messages, and takes none.
pub(crate) fn browses(attach: &Attach) -> bool {
    let is_copy = |source: &Source| source.distribution_mode.as_deref() == Some(COPY);
    attach.source.as_ref().is_some_and(is_copy)
        || lookup(&attach.properties, PEEK_MODE).and_then(Value::as_bool) == Some(true)
}

/// Says in the filters of an answer which session the link has.
pub(crate) fn name_session(filter: &mut Map, id: &str) {
    for (name, value) in filter {
        if name.as_str() == Some(SESSION_FILTER) {
            *value = match std::mem::take(value) {
                Value::Described(pair) => Value::described(pair.0, Value::from(id)),
                _ => Value::from(id),
            };
        }
    }
}

/// Whether a capability asks for a topic.
pub(crate) fn is_of_topics(capability: &Text) -> bool {
    matches!(capability.as_str(), "topic" | "temporary-topic")
}

/// What a client requests as a topic is none, or it would receive from it.
pub(crate) fn no_topic(address: &str) -> AmqpRefusal {
    refused(format!(
        "{address:?} is requested as a topic: that is implemented for senders to one that is there; receive from \
         <topic>/Subscriptions/<name>"
    ))
}

/// The name of a filter that chooses messages, if it is one.
fn selecting((name, value): &(Value, Value)) -> Option<String> {
    let given = name.as_str().unwrap_or_default();
    let is_registered = match value {
        Value::Described(pair) => match &pair.0 {
            Value::Symbol(text) | Value::String(text) => is_registered(text),
            number => {
                number.as_u64().is_some_and(|number| number >> 32 == APACHE || STANDARD.contains(&number))
            }
        },
        _ => false,
    };
    (is_registered || is_registered_name(given)).then(|| given.to_owned())
}

fn is_registered(text: &str) -> bool {
    text.starts_with("apache.org:") || text.starts_with("amqp:")
}

/// Names under which clients write such filters without a descriptor.
fn is_registered_name(name: &str) -> bool {
    is_registered(name) || matches!(name, "jms-selector" | "selector" | "no-local")
}

fn refused(description: impl Into<String>) -> AmqpRefusal {
    AmqpRefusal::new(condition::NOT_IMPLEMENTED, description)
}
