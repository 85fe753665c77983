//! Reading a filter.

use std::fmt;

use crate::filter::expression::Expression;
use crate::filter::expression::Known;
use crate::filter::expression::Name;
use crate::filter::expression::Scope;
use crate::filter::value::Value;
use crate::filter::words::Word;
use crate::filter::words::Words;
use crate::header::Properties;
use crate::limits;

/// A condition on the properties of a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SqlFilter(Expression);

/// Why a text is no filter or no action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    problem: String,
    /// The character before which it was noticed, from 1 on.
    at: usize,
}

impl fmt::Display for Mistake {
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
    pub(crate) fn parse(text: &str, parameters: &Properties) -> Result<SqlFilter, Mistake> {
        let mut parser = Parser::of(text, parameters)?;
        let condition = parser.condition()?;
        match &parser.next {
            None => Ok(SqlFilter(condition)),
            Some(_) => Err(parser.mistake("the filter should have ended")),
        }
    }

    /// Whether it is true of a message of which this is known. What is unknown is not.
    pub(crate) fn matches(&self, known: &dyn Known) -> bool {
        self.0.holds(known) == Some(true)
    }
}

/// A place in a text, with one word read ahead.
pub(crate) struct Parser<'a> {
    words: Words<'a>,
    text: &'a str,
    parameters: &'a Properties,
    pub(crate) next: Option<Word>,
    /// The byte at which that word begins.
    pub(crate) at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    pub(crate) fn of(text: &'a str, parameters: &'a Properties) -> Result<Parser<'a>, Mistake> {
        let (bytes, max) = (text.len(), limits::FILTER_BYTES_MAX);
        if bytes > max {
            return Err(Mistake {
                problem: format!("it has {bytes} bytes, at most {max} are allowed"),
                at: 1,
            });
        }
        let mut parser = Parser { words: Words::of(text), text, parameters, next: None, at: 0, depth: 0 };
        parser.advance()?;
        Ok(parser)
    }

    pub(crate) fn mistake(&self, problem: impl Into<String>) -> Mistake {
        Mistake { problem: problem.into(), at: self.text[..self.at].chars().count() + 1 }
    }

    pub(crate) fn advance(&mut self) -> Result<Option<Word>, Mistake> {
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
    pub(crate) fn took_key(&mut self, key: &str) -> Result<bool, Mistake> {
        let took = matches!(&self.next, Some(Word::Key(next)) if *next == key);
        if took {
            self.advance()?;
        }
        Ok(took)
    }

    /// Goes on if the next is a sign.
    pub(crate) fn took_sign(&mut self, sign: &str) -> Result<bool, Mistake> {
        let took = matches!(&self.next, Some(Word::Sign(next)) if *next == sign);
        if took {
            self.advance()?;
        }
        Ok(took)
    }

    /// Goes on by whichever sign of some is next.
    pub(crate) fn took_one<T: Copy>(&mut self, signs: &[(&str, T)]) -> Result<Option<T>, Mistake> {
        for (sign, meaning) in signs {
            if self.took_sign(sign)? {
                return Ok(Some(*meaning));
            }
        }
        Ok(None)
    }

    pub(crate) fn expect_sign(&mut self, sign: &str) -> Result<(), Mistake> {
        match self.took_sign(sign)? {
            true => Ok(()),
            false => Err(self.mistake(format!("{sign:?} is missing"))),
        }
    }

    /// Reads something that is inside of something else.
    pub(crate) fn inside<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Mistake>,
    ) -> Result<T, Mistake> {
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
    pub(crate) fn parameter(&self, name: &str) -> Result<Expression, Mistake> {
        self.given(name).map(Expression::Constant)
    }

    /// The value of a parameter.
    pub(crate) fn given(&self, name: &str) -> Result<Value<'static>, Mistake> {
        let given = self.parameters.get(name).or_else(|| self.parameters.get(&name[1..]));
        match given.map(Value::from) {
            Some(Value::Text(text)) => Ok(Value::Text(text.into_owned().into())),
            Some(Value::Binary(bytes)) => Ok(Value::Binary(bytes.into_owned().into())),
            Some(Value::Null) => Ok(Value::Null),
            Some(Value::Boolean(truth)) => Ok(Value::Boolean(truth)),
            Some(Value::Integer(number)) => Ok(Value::Integer(number)),
            Some(Value::Float(number)) => Ok(Value::Float(number)),
            None => Err(self.mistake(format!("the parameter {name} is not given"))),
        }
    }

    /// A property, whose first word is given.
    pub(crate) fn property(&mut self, first: String, is_plain: bool) -> Result<Name, Mistake> {
        let scope = match () {
            () if is_plain && first.eq_ignore_ascii_case("sys") => Scope::System,
            () if is_plain && first.eq_ignore_ascii_case("user") => Scope::User,
            () => return self.checked(Scope::User, first),
        };
        if !self.took_sign(".")? {
            return self.checked(Scope::User, first);
        }
        match self.advance()? {
            Some(Word::Name(name) | Word::Quoted(name)) => self.checked(scope, name),
            Some(Word::Key(name)) => self.checked(scope, name.to_owned()),
            _ => Err(self.mistake(format!("the name of a property is missing after \"{first}.\""))),
        }
    }

    fn checked(&self, scope: Scope, text: String) -> Result<Name, Mistake> {
        let max = limits::FILTER_NAME_CHARS_MAX;
        if text.is_empty() || text.chars().count() > max {
            return Err(self.mistake(format!("the name of a property has 1 to {max} characters")));
        }
        if scope == Scope::User {
            return Ok(Name { scope, text });
        }
        let text = text.to_ascii_lowercase();
        match SYSTEM.contains(&text.as_str()) {
            true => Ok(Name { scope, text }),
            false => Err(self.mistake(format!("messages have no field \"sys.{text}\""))),
        }
    }
}
