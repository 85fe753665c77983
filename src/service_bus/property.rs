//! Application properties of AMQP as properties of a message, and back.

use std::collections::BTreeSet;
use std::collections::HashMap;

use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::Text;
use crate::amqp::Value;
use crate::header::Properties;
use crate::header::PropertyValue;
use crate::header::RAW_SECTIONS;
use crate::header::SET_BY_SETTLING;
use crate::header::is_internal;
use crate::limits;
use crate::service_bus::dotnet_value;
use crate::service_bus::refusal::AmqpRefusal;

/// The properties for which there is a word.
pub(crate) fn read(entries: &[(Value, Value)]) -> Properties {
    let known = |(name, value): &(Value, Value)| Some((name.as_str()?.to_owned(), property(value)?));
    entries.iter().filter_map(known).collect()
}

/// What a settlement sets: as properties, and as AMQP says it where a property would lose its type.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PropertyChanges {
    pub(crate) properties: Properties,
    /// Entries of which no property says everything.
    typed: Vec<(Value, Value)>,
}

impl PropertyChanges {
    pub(crate) fn read(entries: &[(Value, Value)]) -> PropertyChanges {
        let loses_type = |(name, original): &&(Value, Value)| {
            name.as_str().is_some_and(|name| !is_internal(name))
                && property(original).is_none_or(|property| value(&property) != *original)
        };
        let typed = entries.iter().filter(loses_type).cloned().collect();
        let mut properties = read(entries);
        properties.retain(|name, _| !is_internal(name));
        PropertyChanges { properties, typed }
    }

    /// Takes out a property that is not the message's.
    pub(crate) fn remove(&mut self, name: &str) -> Option<PropertyValue> {
        self.typed.retain(|(set, _)| set.as_str() != Some(name));
        self.properties.remove(name)
    }

    /// What is stored, where settlements before it have set `before` in their types. Of a message that is sent as its sender has
    /// encoded it, they are stored also if there are none: so it is known that settlements have set something.
    ///
    /// # Errors
    /// What has types of its own is too large together.
    pub(crate) fn to_properties(&self, before: Option<&Bytes>) -> Result<Properties, AmqpRefusal> {
        let mut properties = self.properties.clone();
        let is_noted = before.is_some() && !properties.is_empty();
        let mut typed = before.map(typed).unwrap_or_default();
        let had_any = !typed.is_empty();
        let set: BTreeSet<&str> = self.typed.iter().filter_map(|(set, _)| set.as_str()).collect();
        let is_set = |name: &Value| {
            let name = name.as_str().unwrap_or_default();
            properties.contains_key(name) || set.contains(name)
        };
        typed.retain(|(name, _)| !is_set(name));
        typed.extend(self.typed.iter().cloned());
        if typed.is_empty() && !had_any && !is_noted {
            return Ok(properties);
        }
        let mut out = BytesMut::new();
        Value::Map(typed).encode(&mut out);
        if out.len() > limits::KEPT_BYTES_MAX {
            let most = limits::KEPT_BYTES_MAX;
            return Err(AmqpRefusal::argument(format!(
                "the properties have {} bytes, more than {most}",
                out.len()
            )));
        }
        properties.insert(SET_BY_SETTLING.to_owned(), PropertyValue::Binary(out.freeze()));
        Ok(properties)
    }
}

/// The entries that settlements have set in their types.
fn typed(stored: &Bytes) -> Vec<(Value, Value)> {
    match Value::decode(stored) {
        Ok(Value::Map(entries)) => entries,
        _ => Vec::new(),
    }
}

/// What settlements have set in their types, as it is stored with a message; nothing yet, if the message is sent as its sender has
/// encoded it.
pub(crate) fn set_by_settling(properties: &Properties) -> Option<Bytes> {
    match properties.get(SET_BY_SETTLING) {
        Some(PropertyValue::Binary(stored)) => Some(stored.clone()),
        _ => properties.contains_key(RAW_SECTIONS).then(Bytes::new),
    }
}

/// Takes properties out of what settlements have set in their types.
pub(crate) fn forget_set(properties: &mut Properties, removed: &[String]) {
    let Some(PropertyValue::Binary(stored)) = properties.get(SET_BY_SETTLING) else { return };
    let mut entries = typed(stored);
    let before = entries.len();
    entries.retain(|(name, _)| !removed.iter().any(|removed| name.as_str() == Some(removed)));
    if entries.len() < before {
        let mut out = BytesMut::new();
        Value::Map(entries).encode(&mut out);
        properties.insert(SET_BY_SETTLING.to_owned(), PropertyValue::Binary(out.freeze()));
    }
}

/// Gives entries the types in which settlements have set them, as long as they keep their value.
pub(crate) fn retype(entries: &mut Vec<(Value, Value)>, properties: &Properties) {
    let settled = set_by_settling(properties).as_ref().map(typed).unwrap_or_default();
    if settled.is_empty() {
        return;
    }
    let owned = |(name, at): (&str, usize)| (name.to_owned(), at);
    let mut places: HashMap<String, usize> = places(entries).into_iter().map(owned).collect();
    for (name, set) in settled {
        let Some(text) = name.as_str() else { continue };
        let is_as_set = match (properties.get(text), property(&set)) {
            (Some(now), Some(then)) => is_same(now, &then),
            (None, None) => true,
            // What older versions have stored has no property beside it.
            (None, Some(_)) => matches!(set, Value::Decimal(_) | Value::Described(_)),
            (Some(_), None) => false,
        };
        match places.get(text) {
            _ if !is_as_set => {}
            Some(at) => entries[*at].1 = set,
            None => {
                places.insert(text.to_owned(), entries.len());
                entries.push((name, set));
            }
        }
    }
}

/// Where the first entry of each name stands: a client sends as many as it likes, so none is looked for among all.
fn places(entries: &[(Value, Value)]) -> HashMap<&str, usize> {
    let mut places = HashMap::new();
    for (at, (name, _)) in entries.iter().enumerate() {
        if let Some(name) = name.as_str() {
            places.entry(name).or_insert(at);
        }
    }
    places
}

/// Whether two values are the same; one that is not a number is itself.
fn is_same(one: &PropertyValue, other: &PropertyValue) -> bool {
    match (one, other) {
        (PropertyValue::Float(one), PropertyValue::Float(other)) => one.to_bits() == other.to_bits(),
        (one, other) => one == other,
    }
}

/// One value; nothing when there is no word for it.
pub(crate) fn property(value: &Value) -> Option<PropertyValue> {
    Some(match value {
        Value::Boolean(truth) => PropertyValue::Boolean(*truth),
        Value::Float(number) => PropertyValue::Float(f64::from(*number)),
        Value::Double(number) => PropertyValue::Float(*number),
        Value::String(text) | Value::Symbol(text) => PropertyValue::Text(text.to_string()),
        Value::Binary(bytes) => PropertyValue::Binary(bytes.clone()),
        Value::Char(character) => PropertyValue::Text(character.to_string()),
        Value::Uuid(bytes) => PropertyValue::Text(uuid_text(bytes)),
        Value::Ulong(number) if i64::try_from(*number).is_err() => PropertyValue::Text(number.to_string()),
        Value::Timestamp(millis) => dotnet_value::instant(*millis),
        Value::Decimal(bytes) => PropertyValue::Float(dotnet_value::decimal(bytes)?),
        Value::Described(pair) => dotnet_value::described(&pair.0, &pair.1)?,
        other => PropertyValue::Integer(other.as_i64()?),
    })
}

/// A property as AMQP says it.
pub(crate) fn value(property: &PropertyValue) -> Value {
    match property {
        PropertyValue::Text(text) => Value::from(text.as_str()),
        PropertyValue::Integer(number) => Value::Long(*number),
        PropertyValue::Float(number) => Value::Double(*number),
        PropertyValue::Boolean(truth) => Value::Boolean(*truth),
        PropertyValue::Binary(bytes) => Value::Binary(bytes.clone()),
    }
}

/// Properties as AMQP says them; those that were sent keep their type as long as they keep their value.
pub(crate) fn write(properties: &Properties, sent: &[(Value, Value)]) -> Vec<(Value, Value)> {
    let (mut entries, places) = (sent.to_vec(), places(sent));
    for (name, now) in properties.iter().filter(|(name, _)| !is_internal(name)) {
        match places.get(name.as_str()).map(|at| &mut entries[*at].1) {
            Some(before) if property(before).is_some_and(|before| is_same(&before, now)) => {}
            Some(before) => *before = value(now),
            None => entries.push((Value::from(name.as_str()), value(now))),
        }
    }
    entries
}

/// An ID as text.
pub(crate) fn id_text(id: &Value) -> Option<String> {
    match id {
        Value::String(text) | Value::Symbol(text) => Some(text.to_string()),
        Value::Uuid(bytes) => Some(uuid_text(bytes)),
        Value::Binary(bytes) => Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        other => other.as_u64().map(|number| number.to_string()),
    }
}

/// Sets or replaces an entry.
pub(crate) fn set(entries: &mut Vec<(Value, Value)>, name: &'static str, value: Value) {
    match entries.iter_mut().find(|(key, _)| key.as_str() == Some(name)) {
        Some((_, before)) => *before = value,
        None => entries.push((Value::String(Text::of(name)), value)),
    }
}

fn uuid_text(bytes: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_keeps_its_type_until_its_value_changes() {
        let sent = vec![
            (Value::from("small"), Value::Uint(7)),
            (Value::from("when"), Value::Timestamp(1_000)),
            (Value::from("none"), Value::Null),
        ];
        let mut properties = read(&sent);
        assert_eq!(properties.get("when"), Some(&PropertyValue::from("1970-01-01T00:00:01.000Z")));
        assert_eq!(write(&properties, &sent), sent);
        properties.insert("small".to_owned(), PropertyValue::Integer(8));
        properties.insert("new".to_owned(), PropertyValue::Boolean(true));
        let written = write(&properties, &sent);
        assert_eq!(written[0].1, Value::Long(8));
        assert_eq!(written[3], (Value::from("new"), Value::Boolean(true)));
    }

    fn span(ticks: i64) -> Value {
        Value::described(Value::symbol("com.microsoft:timespan"), Value::Long(ticks))
    }

    #[test]
    fn a_value_that_only_dotnet_has_keeps_its_type_until_its_value_changes() {
        let mut decimal = [0; 16];
        (decimal[0], decimal[1], decimal[15]) = (0x30, 0x3e, 125);
        let price = Value::Decimal(Bytes::copy_from_slice(&decimal));
        let sent = vec![(Value::from("price"), price), (Value::from("lasts"), span(36_000_000_000))];
        let mut properties = read(&sent);
        assert_eq!(properties.get("price"), Some(&PropertyValue::Float(12.5)));
        assert_eq!(properties.get("lasts"), Some(&PropertyValue::from("PT1H")));
        assert_eq!(write(&properties, &sent), sent);
        properties.insert("price".to_owned(), PropertyValue::Float(13.0));
        properties.remove("lasts");
        assert_eq!(write(&properties, &sent)[0].1, Value::Double(13.0));
        assert_eq!(
            write(&properties, &sent)[1].1,
            span(36_000_000_000),
            "an older version stored no property"
        );
    }

    #[test]
    fn what_a_settlement_has_set_in_its_type_is_there_until_it_is_removed() {
        let set = [(Value::from("lasts"), span(1)), (Value::from("small"), Value::Uint(7))];
        let mut properties = PropertyChanges::read(&set).to_properties(None).unwrap();
        let retyped = |properties: &Properties| {
            let mut entries = write(properties, &[]);
            retype(&mut entries, properties);
            entries
        };
        assert_eq!(retyped(&properties), set);
        properties.remove("lasts");
        assert!(retyped(&properties).contains(&set[0]), "an older version stored no property");
        forget_set(&mut properties, &["lasts".to_owned()]);
        assert_eq!(retyped(&properties), set[1..]);
    }

    #[test]
    fn an_id_of_any_type_has_a_text() {
        assert_eq!(id_text(&Value::from("a")).as_deref(), Some("a"));
        assert_eq!(id_text(&Value::Ulong(7)).as_deref(), Some("7"));
        let uuid = Value::Uuid([0xab; 16]);
        assert_eq!(id_text(&uuid).as_deref(), Some("abababab-abab-abab-abab-abababababab"));
        assert_eq!(id_text(&Value::Null), None);
    }
}
