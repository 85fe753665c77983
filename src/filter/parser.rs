//! Reading a filter.

use std::fmt;

use crate::filter::expression::FilterExpression;
use crate::filter::expression::FilterInput;
use crate::filter::expression::Name;
use crate::filter::expression::PropertyScope;
use crate::filter::value::FilterValue;
use crate::filter::words::FilterWord;
use crate::filter::words::FilterWords;
use crate::header::Properties;
use crate::limits;

/// A condition on the properties of a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SqlFilter(FilterExpression);

/// Why a text is no filter or no action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilterMistake {
    problem: String,
    /// The character before which it was noticed, from 1 on.
    at: usize,
}

impl fmt::Display for FilterMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, at character {}", self.problem, self.at)
    }
}

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
    pub(crate) fn parse(text: &str, parameters: &Properties) -> Result<SqlFilter, FilterMistake> {
        let mut parser = FilterParser::of(text, parameters)?;
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

/// A place in a text, with one word read ahead.
pub(crate) struct FilterParser<'a> {
    words: FilterWords<'a>,
    text: &'a str,
    parameters: &'a Properties,
    pub(crate) next: Option<FilterWord>,
    /// The byte at which that word begins.
    pub(crate) at: usize,
    depth: usize,
}

impl<'a> FilterParser<'a> {
    pub(crate) fn of(text: &'a str, parameters: &'a Properties) -> Result<FilterParser<'a>, FilterMistake> {
        let (bytes, max) = (text.len(), limits::FILTER_BYTES_MAX);
        if bytes > max {
            return Err(FilterMistake {
                problem: format!("it has {bytes} bytes, at most {max} are allowed"),
                at: 1,
            });
        }
        let mut parser =
            FilterParser { words: FilterWords::of(text), text, parameters, next: None, at: 0, depth: 0 };
        parser.advance()?;
        Ok(parser)
    }

    pub(crate) fn mistake(&self, problem: impl Into<String>) -> FilterMistake {
        FilterMistake { problem: problem.into(), at: self.text[..self.at].chars().count() + 1 }
    }

    pub(crate) fn advance(&mut self) -> Result<Option<FilterWord>, FilterMistake> {
        match self.words.next() {
            Ok(word) => {
                let (next, at) = word.map_or((None, self.text.len()), |(word, at)| (Some(word), at));
                self.at = at;
                Ok(std::mem::replace(&mut self.next, next))
            }
            Err((problem, at)) => {
                self.at = at;
                Err(self.mistake(problem))
            }
        }
    }

    /// Goes on if the next is a word of the language.
    pub(crate) fn took_key(&mut self, key: &str) -> Result<bool, FilterMistake> {
        let took = matches!(&self.next, Some(FilterWord::Key(next)) if *next == key);
        if took {
            self.advance()?;
        }
        Ok(took)
    }

    /// Goes on if the next is a sign.
    pub(crate) fn took_sign(&mut self, sign: &str) -> Result<bool, FilterMistake> {
        let took = matches!(&self.next, Some(FilterWord::Sign(next)) if *next == sign);
        if took {
            self.advance()?;
        }
        Ok(took)
    }

    /// Goes on by whichever sign of some is next.
    pub(crate) fn took_one<T: Copy>(&mut self, signs: &[(&str, T)]) -> Result<Option<T>, FilterMistake> {
        for (sign, meaning) in signs {
            if self.took_sign(sign)? {
                return Ok(Some(*meaning));
            }
        }
        Ok(None)
    }

    pub(crate) fn expect_sign(&mut self, sign: &str) -> Result<(), FilterMistake> {
        match self.took_sign(sign)? {
            true => Ok(()),
            false => Err(self.mistake(format!("{sign:?} is missing"))),
        }
    }

    /// Reads something that is inside of something else.
    pub(crate) fn inside<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, FilterMistake>,
    ) -> Result<T, FilterMistake> {
        let max = limits::FILTER_DEPTH_MAX;
        if self.depth == max {
            return Err(self.mistake(format!("it is nested more than {max} times")));
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    /// The value of a parameter, as an expression.
    pub(crate) fn parameter(&self, name: &str) -> Result<FilterExpression, FilterMistake> {
        self.given(name).map(FilterExpression::Constant)
    }

    /// The value of a parameter.
    pub(crate) fn given(&self, name: &str) -> Result<FilterValue<'static>, FilterMistake> {
        let given = self.parameters.get(name).or_else(|| self.parameters.get(&name[1..]));
        match given.map(FilterValue::from) {
            Some(FilterValue::Text(text)) => Ok(FilterValue::Text(text.into_owned().into())),
            Some(FilterValue::Binary(bytes)) => Ok(FilterValue::Binary(bytes.into_owned().into())),
            Some(FilterValue::Null) => Ok(FilterValue::Null),
            Some(FilterValue::Boolean(truth)) => Ok(FilterValue::Boolean(truth)),
            Some(FilterValue::Integer(number)) => Ok(FilterValue::Integer(number)),
            Some(FilterValue::Float(number)) => Ok(FilterValue::Float(number)),
            None => Err(self.mistake(format!("the parameter {name} is not given"))),
        }
    }

    /// A property, whose first word is given.
    pub(crate) fn property(&mut self, first: String, is_plain: bool) -> Result<Name, FilterMistake> {
        let scope = match () {
            () if is_plain && first.eq_ignore_ascii_case("sys") => PropertyScope::System,
            () if is_plain && first.eq_ignore_ascii_case("user") => PropertyScope::User,
            () => return self.checked(PropertyScope::User, first),
        };
        if !self.took_sign(".")? {
            return self.checked(PropertyScope::User, first);
        }
        match self.advance()? {
            Some(FilterWord::Name(name) | FilterWord::Quoted(name)) => self.checked(scope, name),
            Some(FilterWord::Key(name)) => self.checked(scope, name.to_owned()),
            _ => Err(self.mistake(format!("the name of a property is missing after \"{first}.\""))),
        }
    }

    fn checked(&self, scope: PropertyScope, text: String) -> Result<Name, FilterMistake> {
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
