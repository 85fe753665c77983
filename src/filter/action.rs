//! Actions: what a rule changes of the copy that it lets through.

use crate::filter::expression::Expression;
use crate::filter::expression::Known;
use crate::filter::expression::Name;
use crate::filter::expression::Scope;
use crate::filter::parser::Mistake;
use crate::filter::parser::Parser;
use crate::filter::value::Value;
use crate::filter::words::Word;
use crate::header::Properties;
use crate::limits;

/// Changes of properties, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Action(Vec<Statement>);

#[derive(Clone, Debug, PartialEq)]
enum Statement {
    Set(Name, Expression),
    Remove(Name),
}

/// The fields that an action may set; the others are the broker's.
const SETTABLE: [&str; 8] =
    ["contenttype", "correlationid", "label", "replyto", "replytosessionid", "sessionid", "subject", "to"];

impl Action {
    /// Reads a text: statements with `;` between them.
    ///
    /// # Errors
    /// What is wrong with it, and where; also that it is longer or deeper than it may be, or has too many statements.
    pub(crate) fn parse(text: &str, parameters: &Properties) -> Result<Action, Mistake> {
        let mut parser = Parser::of(text, parameters)?;
        let mut statements = Vec::new();
        loop {
            while parser.took_sign(";")? {}
            if parser.next.is_none() {
                break;
            }
            if statements.len() == limits::ACTION_STATEMENTS_MAX {
                let max = limits::ACTION_STATEMENTS_MAX;
                return Err(parser.mistake(format!("an action has at most {max} statements")));
            }
            statements.push(statement(&mut parser)?);
            if parser.next.is_some() {
                parser.expect_sign(";")?;
            }
        }
        match statements.is_empty() {
            true => Err(parser.mistake("SET or REMOVE is missing")),
            false => Ok(Action(statements)),
        }
    }

    /// Does what it says; each statement sees what those before it have done.
    pub(crate) fn apply(&self, target: &mut (impl Known + Changed)) {
        for statement in &self.0 {
            match statement {
                Statement::Set(name, expression) => {
                    let value = into_owned(expression.value(target));
                    target.set(name, value);
                }
                Statement::Remove(name) => target.set(name, Value::Null),
            }
        }
    }
}

/// The text of an action with values in place of its parameters.
///
/// # Errors
/// What is wrong with it, and where: a value is not given, or cannot be written.
pub(crate) fn with_values(text: &str, values: &Properties) -> Result<String, Mistake> {
    let mut parser = Parser::of(text, values)?;
    let (mut written, mut copied) = (String::new(), 0);
    while let Some(word) = parser.next.clone() {
        if let Word::Parameter(name) = word {
            let value = literal(&parser.given(&name)?);
            let value =
                value.ok_or_else(|| parser.mistake(format!("the value of {name} cannot be written")))?;
            written.push_str(&text[copied..parser.at]);
            written.push_str(&value);
            copied = parser.at + name.len();
        }
        parser.advance()?;
    }
    written.push_str(&text[copied..]);
    Ok(written)
}

/// A value as a text says it; none for what is no number.
fn literal(value: &Value<'_>) -> Option<String> {
    Some(match value {
        Value::Null => "NULL".to_owned(),
        Value::Boolean(true) => "TRUE".to_owned(),
        Value::Boolean(false) => "FALSE".to_owned(),
        Value::Integer(number) => format!("({number})"),
        Value::Float(number) if number.is_finite() => format!("({number:?})"),
        Value::Float(_) => return None,
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Binary(bytes) => bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}")),
    })
}

/// What an action changes.
pub(crate) trait Changed {
    /// Sets a property; what is set to nothing is removed.
    fn set(&mut self, name: &Name, value: Value<'static>);
}

fn statement(parser: &mut Parser<'_>) -> Result<Statement, Mistake> {
    if parser.took_key("SET")? {
        let name = target(parser)?;
        parser.expect_sign("=")?;
        return Ok(Statement::Set(name, parser.plain_value()?));
    }
    if parser.took_key("REMOVE")? {
        let name = target(parser)?;
        return match name.scope {
            Scope::User => Ok(Statement::Remove(name)),
            Scope::System => Err(parser.mistake("only properties of the sender can be removed")),
        };
    }
    Err(parser.mistake("SET or REMOVE is missing"))
}

fn target(parser: &mut Parser<'_>) -> Result<Name, Mistake> {
    let name = match parser.plain_value()? {
        Expression::Property(name) => name,
        _ => return Err(parser.mistake("the name of a property is missing")),
    };
    if name.scope == Scope::System && !SETTABLE.contains(&name.text.as_str()) {
        return Err(parser.mistake(format!("\"sys.{}\" cannot be set by an action", name.text)));
    }
    Ok(name)
}

fn into_owned(value: Value<'_>) -> Value<'static> {
    match value {
        Value::Null => Value::Null,
        Value::Boolean(truth) => Value::Boolean(truth),
        Value::Integer(number) => Value::Integer(number),
        Value::Float(number) => Value::Float(number),
        Value::Text(text) => Value::Text(text.into_owned().into()),
        Value::Binary(bytes) => Value::Binary(bytes.into_owned().into()),
    }
}
