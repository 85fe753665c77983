//! Actions: what a rule changes of the copy that it lets through.

use crate::filter::expression::FilterExpression;
use crate::filter::expression::FilterInput;
use crate::filter::expression::Name;
use crate::filter::expression::PropertyScope;
use crate::filter::parser::FilterParser;
use crate::filter::value::FilterValue;
use crate::filter::word_reader::SyntaxMistake;
use crate::filter::words::FilterWord;
use crate::filter::words::FilterWords;
use crate::header::Properties;
use crate::limits;

/// Changes of properties, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Action(Vec<Statement>);

#[derive(Clone, Debug, PartialEq)]
enum Statement {
    Set(Name, FilterExpression),
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
    pub(crate) fn parse(text: &str, parameters: &Properties) -> Result<Action, SyntaxMistake> {
        let mut parser = FilterParser::of(text, FilterWords::of(text, parameters))?;
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
    pub(crate) fn apply(&self, target: &mut (impl FilterInput + ActionTarget)) {
        for statement in &self.0 {
            match statement {
                Statement::Set(name, expression) => {
                    let value = expression.value(target).into_owned();
                    target.set(name, value);
                }
                Statement::Remove(name) => target.set(name, FilterValue::Null),
            }
        }
    }
}

/// The text of an action with values in place of its parameters.
///
/// # Errors
/// What is wrong with it, and where: a value is not given, or cannot be written.
pub(crate) fn with_values(text: &str, values: &Properties) -> Result<String, SyntaxMistake> {
    let mut parser = FilterParser::of(text, FilterWords::of(text, values))?;
    let (mut written, mut copied) = (String::new(), 0);
    while let Some(word) = parser.next.clone() {
        if let FilterWord::Parameter(name) = word {
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
fn literal(value: &FilterValue<'_>) -> Option<String> {
    Some(match value {
        FilterValue::Null => "NULL".to_owned(),
        FilterValue::Boolean(true) => "TRUE".to_owned(),
        FilterValue::Boolean(false) => "FALSE".to_owned(),
        FilterValue::Integer(number) => format!("({number})"),
        FilterValue::Float(number) if number.is_finite() => format!("({number:?})"),
        FilterValue::Float(_) => return None,
        FilterValue::Text(text) => format!("'{}'", text.replace('\'', "''")),
        FilterValue::Binary(bytes) => {
            bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}"))
        }
    })
}

/// What an action changes.
pub(crate) trait ActionTarget {
    /// Sets a property; what is set to nothing is removed.
    fn set(&mut self, name: &Name, value: FilterValue<'static>);
}

fn statement(parser: &mut FilterParser<'_>) -> Result<Statement, SyntaxMistake> {
    if parser.took_key("SET")? {
        let name = target(parser)?;
        parser.expect_sign("=")?;
        return Ok(Statement::Set(name, parser.plain_value()?));
    }
    if parser.took_key("REMOVE")? {
        let name = target(parser)?;
        return match name.scope {
            PropertyScope::User => Ok(Statement::Remove(name)),
            PropertyScope::System => Err(parser.mistake("only properties of the sender can be removed")),
        };
    }
    Err(parser.mistake("SET or REMOVE is missing"))
}

fn target(parser: &mut FilterParser<'_>) -> Result<Name, SyntaxMistake> {
    let name = match parser.plain_value()? {
        FilterExpression::Property(name) => name,
        _ => return Err(parser.mistake("the name of a property is missing")),
    };
    if name.scope == PropertyScope::System && !SETTABLE.contains(&name.text.as_str()) {
        return Err(parser.mistake(format!("\"sys.{}\" cannot be set by an action", name.text)));
    }
    Ok(name)
}
