//! Names and values in rules, each with the type that a document says.

use roxmltree::Node;

use crate::api::WireTime;
use crate::header::Properties;
use crate::header::PropertyValue;
use crate::service_bus::administration::atom::SCHEMA;
use crate::service_bus::administration::document;
use crate::service_bus::administration::refusal::AdminRefusal;
use crate::service_bus::description::TypedValue;
use crate::xml::Xml;

/// Types of which values are texts here, and returned with their type.
const TYPED: [&str; 3] = ["dateTime", "duration", "guid"];

/// Reads names and values.
pub(crate) fn read(element: Option<Node<'_, '_>>) -> Result<Properties, AdminRefusal> {
    let Some(element) = element else { return Ok(Properties::new()) };
    document::elements(element)
        .map(|pair| {
            let name = document::child(pair, "Key").map(document::text);
            let name = name.ok_or_else(|| AdminRefusal::bad("a value has no <Key>"))?;
            let value = document::child(pair, "Value")
                .ok_or_else(|| AdminRefusal::bad(format!("{name} has no <Value>")))?;
            let text = document::text(value);
            let value = value_of(document::kind(value), &text).ok_or_else(|| {
                AdminRefusal::bad(format!("the value {text:?} of {name} is not of its type"))
            })?;
            Ok((name, value))
        })
        .collect()
}

fn value_of(kind: &str, text: &str) -> Option<PropertyValue> {
    Some(match kind {
        "int" | "long" | "short" | "byte" | "unsignedByte" | "unsignedShort" | "unsignedInt"
        | "unsignedLong" | "integer" => PropertyValue::Integer(text.trim().parse().ok()?),
        "double" | "float" | "decimal" => PropertyValue::Float(text.trim().parse().ok()?),
        "boolean" => PropertyValue::Boolean(match text.trim() {
            "true" | "1" => true,
            "false" | "0" => false,
            _ => return None,
        }),
        "dateTime" => PropertyValue::Text(instant_text(text).unwrap_or_else(|| text.to_owned())),
        _ => PropertyValue::Text(text.to_owned()),
    })
}

/// An instant as it is compared: in the words in which the instants of messages are read. One without an offset is of UTC;
/// one before 1970 has no such words.
fn instant_text(text: &str) -> Option<String> {
    let text = text.trim();
    let instant = text.parse::<WireTime>().or_else(|_| format!("{text}Z").parse());
    instant.ok().map(|instant| instant.to_string())
}

/// The values whose type is none here.
pub(crate) fn typed(element: Option<Node<'_, '_>>) -> Vec<TypedValue> {
    let mut all = all(element);
    all.retain(|value| TYPED.contains(&value.kind.as_str()));
    all
}

/// All values, with their types. What cannot be read is left out.
pub(crate) fn all(element: Option<Node<'_, '_>>) -> Vec<TypedValue> {
    let pairs = element.into_iter().flat_map(document::elements);
    let value = |pair: Node<'_, '_>| {
        let value = document::child(pair, "Value")?;
        let (kind, text) = (document::kind(value), document::text(value));
        let stored = match value_of(kind, &text)? {
            PropertyValue::Text(stored) => stored,
            _ => text.clone(),
        };
        let name = document::child(pair, "Key").map(document::text)?;
        Some(TypedValue { name, kind: kind.to_owned(), text, stored })
    };
    pairs.filter_map(value).collect()
}

/// Writes names and values; those with a type of their own with that type.
pub(crate) fn write(xml: &mut Xml, values: &Properties, typed: &[TypedValue]) {
    for (name, value) in values {
        let known = typed.iter().find(|known| match value {
            PropertyValue::Text(text) => known.name == *name && known.stored == *text,
            _ => false,
        });
        let (kind, text) = match (known, value) {
            (Some(known), _) => (known.kind.as_str(), known.text.clone()),
            (None, PropertyValue::Text(text)) => ("string", text.clone()),
            (None, PropertyValue::Integer(number)) if i32::try_from(*number).is_ok() => {
                ("int", number.to_string())
            }
            (None, PropertyValue::Integer(number)) => ("long", number.to_string()),
            (None, PropertyValue::Float(number)) if number.is_infinite() => {
                ("double", if *number > 0.0 { "INF" } else { "-INF" }.to_owned())
            }
            (None, PropertyValue::Float(number)) => ("double", number.to_string()),
            (None, PropertyValue::Boolean(truth)) => ("boolean", truth.to_string()),
            // No document can say bytes; only a client that speaks AMQP has given them.
            (None, PropertyValue::Binary(_)) => continue,
        };
        write_one(xml, name, kind, &text);
    }
}

/// Writes names and values as they came.
pub(crate) fn write_all(xml: &mut Xml, values: &[TypedValue]) {
    values.iter().for_each(|value| write_one(xml, &value.name, &value.kind, &value.text));
}

fn write_one(xml: &mut Xml, name: &str, kind: &str, text: &str) {
    xml.within("KeyValueOfstringanyType", |xml| {
        xml.leaf("Key", name);
        let kind = format!("d6p1:{kind}");
        xml.within_named("Value", &[("i:type", &kind), ("xmlns:d6p1", SCHEMA)], |xml| xml.text(text));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_compared_as_those_of_messages_are() {
        for text in ["2026-07-05T11:12:13", "2026-07-05T11:12:13Z", "2026-07-05T13:12:13.0000000+02:00"] {
            let stored = PropertyValue::from("2026-07-05T11:12:13.000Z");
            assert_eq!(value_of("dateTime", text), Some(stored), "{text}");
        }
        assert_eq!(value_of("dateTime", "0001-01-01T00:00:00"), Some("0001-01-01T00:00:00".into()));
    }

    #[test]
    fn a_number_without_end_is_told_in_the_words_of_xml_schema_and_read_in_these_and_its_own() {
        for (number, word, own) in [(f64::INFINITY, "INF", "inf"), (f64::NEG_INFINITY, "-INF", "-inf")] {
            let mut xml = Xml::new();
            let values = Properties::from([("limit".to_owned(), PropertyValue::Float(number))]);
            xml.within("Values", |xml| write(xml, &values, &[]));
            let written = xml.into_text();
            assert!(written.contains(&format!(">{word}<")), "{written}");
            for text in [word, own] {
                assert_eq!(value_of("double", text), Some(PropertyValue::Float(number)), "{text}");
            }
        }
        assert!(matches!(value_of("double", "NaN"), Some(PropertyValue::Float(number)) if number.is_nan()));
    }

    #[test]
    fn a_value_is_told_as_it_was_said_only_as_long_as_it_is_that() {
        let typed = TypedValue {
            name: "when".to_owned(),
            kind: "dateTime".to_owned(),
            text: "2026-07-05T11:12:13".to_owned(),
            stored: "2026-07-05T11:12:13.000Z".to_owned(),
        };
        let written = |text: &str| {
            let mut xml = Xml::new();
            let values = Properties::from([("when".to_owned(), PropertyValue::from(text))]);
            xml.within("Values", |xml| write(xml, &values, std::slice::from_ref(&typed)));
            xml.into_text()
        };
        let as_written = written(&typed.stored);
        assert!(
            as_written.contains("d6p1:dateTime") && as_written.contains(">2026-07-05T11:12:13<"),
            "{as_written}"
        );
        let another = written("another");
        assert!(another.contains("d6p1:string") && another.contains(">another<"), "{another}");
    }
}
