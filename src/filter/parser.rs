//! Reading a filter.

use crate::filter::expression::FilterExpression;
use crate::filter::expression::FilterInput;
use crate::filter::expression::Name;
use crate::filter::expression::PropertyScope;
use crate::filter::value::FilterValue;
use crate::filter::word_reader::SyntaxMistake;
use crate::filter::word_reader::WordReader;
use crate::filter::words::FilterWord;
use crate::filter::words::FilterWords;
use crate::header::Properties;
use crate::limits;

/// A condition on the properties of a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SqlFilter(FilterExpression);

/// The fields of a message that SQL can name after `sys.`, in small letters.
const SYSTEM: [&str; 17] = [
    "contenttype",
    "correlationid",
    "deliverycount",
    "enqueuedsequencenumber",
    "enqueuedtimeutc",
    "expiresatutc",
    "label",
    "messageid",
    "partitionkey",
    "replyto",
    "replytosessionid",
    "scheduledenqueuetimeutc",
    "sequencenumber",
    "sessionid",
    "subject",
    "timetolive",
    "to",
];

impl SqlFilter {
    /// Reads a text. A `@name` in it means the parameter of that name.
    ///
    /// # Errors
    /// What is wrong with it, and where; also that it is longer or deeper than it may be.
    pub(crate) fn parse(text: &str, parameters: &Properties) -> Result<SqlFilter, SyntaxMistake> {
        let mut parser = FilterParser::of(text, FilterWords::of(text, parameters))?;
        let condition = parser.condition()?;
        match &parser.next {
            None => Ok(SqlFilter(condition)),
            Some(_) => Err(parser.mistake("the filter should have ended")),
        }
    }

    /// Whether it is true of a message of which this is known. What is unknown is not.
    pub(crate) fn matches(&self, known: &dyn FilterInput) -> bool {
        self.0.holds(known) == Some(true)
    }
}

/// A place in a filter or an action.
pub(crate) type FilterParser<'a> = WordReader<'a, FilterWords<'a>>;

impl FilterParser<'_> {
    /// The value of a parameter, as an expression.
    pub(crate) fn parameter(&self, name: &str) -> Result<FilterExpression, SyntaxMistake> {
        self.given(name).map(FilterExpression::Constant)
    }

    /// The value of a parameter.
    pub(crate) fn given(&self, name: &str) -> Result<FilterValue<'static>, SyntaxMistake> {
        let parameters = self.words.parameters;
        let given = parameters.get(name).or_else(|| parameters.get(&name[1..]));
        let given = given.ok_or_else(|| self.mistake(format!("the parameter {name} is not given")))?;
        Ok(FilterValue::from(given).into_owned())
    }

    /// A property, whose first word is given.
    pub(crate) fn property(&mut self, first: String, is_plain: bool) -> Result<Name, SyntaxMistake> {
        let scope = match () {
            () if is_plain && first.eq_ignore_ascii_case("sys") => PropertyScope::System,
            () if is_plain && first.eq_ignore_ascii_case("user") => PropertyScope::User,
            () => return self.checked(PropertyScope::User, first),
        };
        if !self.took_sign(".")? {
            return self.checked(PropertyScope::User, first);
        }
        let key = self.key_as_written().map(str::to_owned);
        match (self.advance()?, key) {
            (Some(FilterWord::Name(name) | FilterWord::Quoted(name)), _) | (_, Some(name)) => {
                self.checked(scope, name)
            }
            _ => Err(self.mistake(format!("the name of a property is missing after \"{first}.\""))),
        }
    }

    fn checked(&self, scope: PropertyScope, text: String) -> Result<Name, SyntaxMistake> {
        let max = limits::FILTER_NAME_CHARS_MAX;
        if text.is_empty() || text.chars().count() > max {
            return Err(self.mistake(format!("the name of a property has 1 to {max} characters")));
        }
        if scope == PropertyScope::User {
            return Ok(Name { scope, text });
        }
        let text = text.to_ascii_lowercase();
        match SYSTEM.contains(&text.as_str()) {
            true => Ok(Name { scope, text }),
            false => Err(self.mistake(format!("messages have no field \"sys.{text}\""))),
        }
    }
}
