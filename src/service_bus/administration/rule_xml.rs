//! Rules as documents say them: a filter and an action.

use roxmltree::Node;

use crate::clock::Timestamp;
use crate::header::Properties;
use crate::service_bus::administration::atom::instant;
use crate::service_bus::administration::document;
use crate::service_bus::administration::refusal::AdminRefusal;
use crate::service_bus::administration::rule_values;
use crate::service_bus::description::ActionText;
use crate::service_bus::description::RuleSettings;
use crate::service_bus::description::TypedValue;
use crate::service_bus::sql_filter::sql_filter;
use crate::topic::Correlation;
use crate::topic::DEFAULT_RULE;
use crate::topic::Filter;
use crate::topic::Rule;
use crate::xml::Xml;

/// The version of the language of filters that clients expect.
const COMPATIBILITY: &str = "20";

/// Reads what describes a rule, and what it says that no rule of ours knows.
pub(crate) fn read(element: Node<'_, '_>) -> Result<(Rule, RuleSettings), AdminRefusal> {
    let name = document::child(element, "Name").map(document::text).filter(|name| !name.is_empty());
    let filter = document::child(element, "Filter");
    let typed = filter.and_then(|filter| {
        document::child(filter, "Properties").or_else(|| document::child(filter, "Parameters"))
    });
    let mut settings = RuleSettings { values: rule_values::typed(typed), action: None };
    let filter = filter.map_or(Ok(Filter::True), read_filter)?;
    let mut rule = Rule::new(name.unwrap_or_else(|| DEFAULT_RULE.to_owned()), filter);
    if let Some(action) = document::child(element, "Action") {
        let expression = text_of(action, "SqlExpression").filter(|text| !text.trim().is_empty());
        if let Some(expression) = expression {
            (rule, settings.action) = with_action(rule, action, expression)?;
        }
    }
    rule.check()?;
    Ok((rule, settings))
}

fn with_action(
    rule: Rule,
    action: Node<'_, '_>,
    expression: String,
) -> Result<(Rule, Option<ActionText>), AdminRefusal> {
    let given = document::child(action, "Parameters");
    let values = rule_values::read(given)?;
    if values.is_empty() {
        return Ok((rule.action(expression), None));
    }
    let rule = rule.action_with(&expression, &values)?;
    let stored = rule.changes().unwrap_or_default().to_owned();
    Ok((rule, Some(ActionText { expression, parameters: rule_values::all(given), stored })))
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
                properties: rule_values::read(document::child(filter, "Properties"))?,
            }))
        }
        "SqlFilter" => {
            let expression = text_of(filter, "SqlExpression").unwrap_or_default();
            let parameters = rule_values::read(document::child(filter, "Parameters"))?;
            Ok(sql_filter(expression, parameters))
        }
        other => Err(AdminRefusal::bad(format!("a Filter of type {other:?} is not known"))),
    }
}

/// Writes what describes a rule, and its description.
pub(crate) fn write(xml: &mut Xml, (rule, settings): (&Rule, Option<&RuleSettings>), created_at: Timestamp) {
    write_filter(xml, rule.filter(), settings.map_or(&[], |settings| &settings.values));
    let parameters = settings.and_then(|settings| settings.action.as_ref());
    let parameters = parameters.filter(|action| Some(action.stored.as_str()) == rule.changes());
    match (parameters, rule.changes()) {
        (Some(settings), _) => xml.within_named("Action", &[("i:type", "SqlRuleAction")], |xml| {
            xml.leaf("SqlExpression", &settings.expression);
            xml.leaf("CompatibilityLevel", COMPATIBILITY);
            xml.within("Parameters", |xml| rule_values::write_all(xml, &settings.parameters));
        }),
        (None, None) => xml.within_named("Action", &[("i:type", "EmptyRuleAction")], |_| {}),
        (None, Some(action)) => xml.within_named("Action", &[("i:type", "SqlRuleAction")], |xml| {
            xml.leaf("SqlExpression", action);
            xml.leaf("CompatibilityLevel", COMPATIBILITY);
        }),
    }
    xml.leaf("CreatedAt", &instant(created_at));
    xml.leaf("Name", rule.name());
}

fn write_filter(xml: &mut Xml, filter: &Filter, typed: &[TypedValue]) {
    let sql = |xml: &mut Xml, kind: &str, expression: &str, parameters: &Properties| {
        xml.within_named("Filter", &[("i:type", kind)], |xml| {
            xml.leaf("SqlExpression", expression);
            xml.leaf("CompatibilityLevel", COMPATIBILITY);
            if !parameters.is_empty() {
                xml.within("Parameters", |xml| rule_values::write(xml, parameters, typed));
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
                    xml.within("Properties", |xml| rule_values::write(xml, &correlation.properties, typed));
                }
            });
        }
    }
}
