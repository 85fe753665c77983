//! Rules as documents say them: a filter, an action, and values with their types.

use roxmltree::Node;

use crate::clock::Timestamp;
use crate::header::Properties;
use crate::header::PropertyValue;
use crate::service_bus::administration::atom::SCHEMA;
use crate::service_bus::administration::atom::instant;
use crate::service_bus::administration::document;
use crate::service_bus::administration::refusal::AdminRefusal;
use crate::topic::Correlation;
use crate::topic::DEFAULT_RULE;
use crate::topic::Filter;
use crate::topic::Rule;
use crate::xml::Xml;

/// The version of the language of filters that clients expect to be told.
const COMPATIBILITY: &str = "20";

/// Reads what describes a rule.
pub(crate) fn read(element: Node<'_, '_>) -> Result<Rule, AdminRefusal> {
    let name = document::child(element, "Name").map(document::text).filter(|name| !name.is_empty());
    let filter = document::child(element, "Filter").map_or(Ok(Filter::True), read_filter)?;
    let mut rule = Rule::new(name.unwrap_or_else(|| DEFAULT_RULE.to_owned()), filter);
    if let Some(action) = document::child(element, "Action") {
        let expression = text_of(action, "SqlExpression").filter(|text| !text.trim().is_empty());
        if let Some(expression) = expression {
            if document::child(action, "Parameters")
                .is_some_and(|given| document::elements(given).next().is_some())
            {
                return Err(AdminRefusal::bad(
                    "parameters of an action are not possible here: write the values",
                ));
            }
            rule = rule.action(expression);
        }
    }
    rule.check()?;
    Ok(rule)
}

fn text_of(element: Node<'_, '_>, name: &str) -> Option<String> {
    document::child(element, name).map(document::text)
}

fn read_filter(filter: Node<'_, '_>) -> Result<Filter, AdminRefusal> {
    match document::kind(filter) {
        "TrueFilter" => Ok(Filter::True),
        "FalseFilter" => Ok(Filter::False),
        "CorrelationFilter" => {
            let text = |name: &str| text_of(filter, name).filter(|text| !text.is_empty());
            Ok(Filter::Correlation(Correlation {
                correlation_id: text("CorrelationId"),
                message_id: text("MessageId"),
                to: text("To"),
                reply_to: text("ReplyTo"),
                subject: text("Label"),
                workflow_id: text("SessionId"),
                reply_to_workflow_id: text("ReplyToSessionId"),
                content_type: text("ContentType"),
                properties: values(document::child(filter, "Properties"))?,
            }))
        }
        "SqlFilter" => {
            let expression = text_of(filter, "SqlExpression").unwrap_or_default();
            let parameters = values(document::child(filter, "Parameters"))?;
            Ok(match expression.trim() {
                // As clients say that they want everything, or nothing.
                "1=1" if parameters.is_empty() => Filter::True,
                "1=0" | "1!=1" if parameters.is_empty() => Filter::False,
                _ => Filter::Sql { expression, parameters },
            })
        }
        other => Err(AdminRefusal::bad(format!("a Filter of type {other:?} is not known"))),
    }
}

/// Names and values, each with the type that it says.
fn values(element: Option<Node<'_, '_>>) -> Result<Properties, AdminRefusal> {
    let Some(element) = element else { return Ok(Properties::new()) };
    document::elements(element)
        .map(|pair| {
            let name = text_of(pair, "Key").ok_or_else(|| AdminRefusal::bad("a value has no <Key>"))?;
            let value = document::child(pair, "Value")
                .ok_or_else(|| AdminRefusal::bad(format!("{name} has no <Value>")))?;
            let settings = document::text(value);
            let wrong = || AdminRefusal::bad(format!("the value {settings:?} of {name} is not of its type"));
            let value = match document::kind(value) {
                "int" | "long" | "short" | "byte" | "unsignedByte" | "unsignedShort" | "unsignedInt"
                | "unsignedLong" | "integer" => {
                    PropertyValue::Integer(settings.trim().parse().map_err(|_| wrong())?)
                }
                "double" | "float" | "decimal" => {
                    PropertyValue::Float(settings.trim().parse().map_err(|_| wrong())?)
                }
                "boolean" => PropertyValue::Boolean(match settings.trim() {
                    "true" | "1" => true,
                    "false" | "0" => false,
                    _ => return Err(wrong()),
                }),
                _ => PropertyValue::Text(settings),
            };
            Ok((name, value))
        })
        .collect()
}

/// Writes what describes a rule.
pub(crate) fn write(xml: &mut Xml, rule: &Rule, created_at: Timestamp) {
    write_filter(xml, rule.filter());
    match rule.changes() {
        None => xml.within_named("Action", &[("i:type", "EmptyRuleAction")], |_| {}),
        Some(action) => xml.within_named("Action", &[("i:type", "SqlRuleAction")], |xml| {
            xml.leaf("SqlExpression", action);
            xml.leaf("CompatibilityLevel", COMPATIBILITY);
        }),
    }
    xml.leaf("CreatedAt", &instant(created_at));
    xml.leaf("Name", rule.name());
}

fn write_filter(xml: &mut Xml, filter: &Filter) {
    let sql = |xml: &mut Xml, kind: &str, expression: &str, parameters: &Properties| {
        xml.within_named("Filter", &[("i:type", kind)], |xml| {
            xml.leaf("SqlExpression", expression);
            xml.leaf("CompatibilityLevel", COMPATIBILITY);
            if !parameters.is_empty() {
                xml.within("Parameters", |xml| write_values(xml, parameters));
            }
        });
    };
    match filter {
        Filter::True => sql(xml, "TrueFilter", "1=1", &Properties::new()),
        Filter::False => sql(xml, "FalseFilter", "1=0", &Properties::new()),
        Filter::Sql { expression, parameters } => sql(xml, "SqlFilter", expression, parameters),
        Filter::Correlation(correlation) => {
            xml.within_named("Filter", &[("i:type", "CorrelationFilter")], |xml| {
                for (name, text) in [
                    ("CorrelationId", &correlation.correlation_id),
                    ("MessageId", &correlation.message_id),
                    ("To", &correlation.to),
                    ("ReplyTo", &correlation.reply_to),
                    ("Label", &correlation.subject),
                    ("SessionId", &correlation.workflow_id),
                    ("ReplyToSessionId", &correlation.reply_to_workflow_id),
                    ("ContentType", &correlation.content_type),
                ] {
                    if let Some(text) = text {
                        xml.leaf(name, text);
                    }
                }
                if !correlation.properties.is_empty() {
                    xml.within("Properties", |xml| write_values(xml, &correlation.properties));
                }
            });
        }
    }
}

fn write_values(xml: &mut Xml, values: &Properties) {
    for (name, value) in values {
        let (kind, text) = match value {
            PropertyValue::Text(text) => ("string", text.clone()),
            PropertyValue::Integer(number) if i32::try_from(*number).is_ok() => ("int", number.to_string()),
            PropertyValue::Integer(number) => ("long", number.to_string()),
            PropertyValue::Float(number) => ("double", number.to_string()),
            PropertyValue::Boolean(truth) => ("boolean", truth.to_string()),
            // No document can say bytes; only a client that speaks AMQP has given them.
            PropertyValue::Binary(_) => continue,
        };
        xml.within("KeyValueOfstringanyType", |xml| {
            xml.leaf("Key", name);
            let kind = format!("d6p1:{kind}");
            xml.within_named("Value", &[("i:type", &kind), ("xmlns:d6p1", SCHEMA)], |xml| xml.text(&text));
        });
    }
}
