//! The grammar of conditions and values.

use crate::filter::expression::FilterExpression;
use crate::filter::expression::Name;
use crate::filter::parser::FilterParser;
use crate::filter::pattern::LikePattern;
use crate::filter::value::FilterArithmetic;
use crate::filter::value::FilterComparison;
use crate::filter::value::FilterValue;
use crate::filter::word_reader::SyntaxMistake;
use crate::filter::words::FilterWord;

const COMPARISONS: [(&str, FilterComparison); 7] = [
    ("=", FilterComparison::Equal),
    ("<>", FilterComparison::Different),
    ("!=", FilterComparison::Different),
    ("<", FilterComparison::Less),
    ("<=", FilterComparison::LessOrEqual),
    (">", FilterComparison::Greater),
    (">=", FilterComparison::GreaterOrEqual),
];

const SUMS: [(&str, FilterArithmetic); 2] = [("+", FilterArithmetic::Add), ("-", FilterArithmetic::Subtract)];

const PRODUCTS: [(&str, FilterArithmetic); 3] =
    [("*", FilterArithmetic::Multiply), ("/", FilterArithmetic::Divide), ("%", FilterArithmetic::Remainder)];

impl FilterParser<'_> {
    pub(crate) fn condition(&mut self) -> Result<FilterExpression, SyntaxMistake> {
        let found = self.any()?;
        self.check(found.is_condition(), "there is a value where a condition should be")?;
        Ok(found)
    }

    /// A value, and no condition.
    pub(crate) fn plain_value(&mut self) -> Result<FilterExpression, SyntaxMistake> {
        let found = self.sum()?;
        self.check(found.is_value(), "there is a condition where a value should be")?;
        Ok(found)
    }

    fn any(&mut self) -> Result<FilterExpression, SyntaxMistake> {
        self.chain("OR", FilterParser::all, FilterExpression::Or)
    }

    fn all(&mut self) -> Result<FilterExpression, SyntaxMistake> {
        self.chain("AND", FilterParser::not, FilterExpression::And)
    }

    fn chain(
        &mut self,
        key: &str,
        part: fn(&mut Self) -> Result<FilterExpression, SyntaxMistake>,
        whole: fn(Vec<FilterExpression>) -> FilterExpression,
    ) -> Result<FilterExpression, SyntaxMistake> {
        let first = part(self)?;
        let mut parts = Vec::new();
        while self.took_key(key)? {
            let next = part(self)?;
            self.check(next.is_condition(), "there is a value where a condition should be")?;
            parts.push(next);
        }
        if parts.is_empty() {
            return Ok(first);
        }
        self.check(first.is_condition(), "there is a value where a condition should be")?;
        parts.insert(0, first);
        Ok(whole(parts))
    }

    fn not(&mut self) -> Result<FilterExpression, SyntaxMistake> {
        if !self.took_key("NOT")? {
            return self.test();
        }
        let inside = self.inside(FilterParser::not)?;
        self.check(inside.is_condition(), "there is a value where a condition should be")?;
        Ok(FilterExpression::Not(Box::new(inside)))
    }

    /// A value, and what is asked of it.
    fn test(&mut self) -> Result<FilterExpression, SyntaxMistake> {
        let value = self.sum()?;
        if let Some(comparison) = self.took_one(&COMPARISONS)? {
            self.check(value.is_value(), "there is a condition where a value should be")?;
            let other = self.plain_value()?;
            return Ok(FilterExpression::Compared(Box::new(value), comparison, Box::new(other)));
        }
        if self.took_key("IS")? {
            return self.is_null(value);
        }
        let is_not = self.took_key("NOT")?;
        if self.took_key("IN")? {
            self.check(value.is_value(), "there is a condition where a value should be")?;
            return self.list(value, is_not);
        }
        if self.took_key("LIKE")? {
            self.check(value.is_value(), "there is a condition where a value should be")?;
            return self.like(value, is_not);
        }
        self.check(!is_not, "IN or LIKE is missing")?;
        Ok(value)
    }

    fn is_null(&mut self, value: FilterExpression) -> Result<FilterExpression, SyntaxMistake> {
        let FilterExpression::Property(name) = value else {
            return Err(self.mistake("IS NULL goes behind a property"));
        };
        let is_not = self.took_key("NOT")?;
        match self.took_key("NULL")? {
            true => Ok(FilterExpression::IsNull { name, is_not }),
            false => Err(self.mistake("NULL is missing")),
        }
    }

    fn list(&mut self, value: FilterExpression, is_not: bool) -> Result<FilterExpression, SyntaxMistake> {
        self.expect_sign("(")?;
        let mut list = vec![self.inside(FilterParser::plain_value)?];
        while self.took_sign(",")? {
            list.push(self.inside(FilterParser::plain_value)?);
        }
        self.expect_sign(")")?;
        Ok(FilterExpression::In { value: Box::new(value), list, is_not })
    }

    fn like(&mut self, value: FilterExpression, is_not: bool) -> Result<FilterExpression, SyntaxMistake> {
        let pattern = self.text("the pattern of LIKE")?;
        let escape = match self.took_key("ESCAPE")? {
            true => Some(self.text("what follows ESCAPE")?),
            false => None,
        };
        let mut characters = escape.iter().flat_map(|escape| escape.chars());
        let character = characters.next();
        self.check(
            escape.is_none() || (character.is_some() && characters.next().is_none()),
            "what follows ESCAPE is one character",
        )?;
        let pattern = LikePattern::read(&pattern, character).map_err(|problem| self.mistake(problem))?;
        Ok(FilterExpression::Like { value: Box::new(value), pattern, is_not })
    }

    /// A text that does not depend on the message.
    fn text(&mut self, what: &str) -> Result<String, SyntaxMistake> {
        match self.atom()? {
            FilterExpression::Constant(FilterValue::Text(text)) => Ok(text.into_owned()),
            _ => Err(self.mistake(format!("{what} is a text between quotes, or a parameter that is one"))),
        }
    }

    fn sum(&mut self) -> Result<FilterExpression, SyntaxMistake> {
        self.reckoned(&SUMS, FilterParser::product)
    }

    fn product(&mut self) -> Result<FilterExpression, SyntaxMistake> {
        self.reckoned(&PRODUCTS, FilterParser::signed)
    }

    fn reckoned(
        &mut self,
        signs: &[(&str, FilterArithmetic)],
        part: fn(&mut Self) -> Result<FilterExpression, SyntaxMistake>,
    ) -> Result<FilterExpression, SyntaxMistake> {
        let first = part(self)?;
        let mut more = Vec::new();
        while let Some(arithmetic) = self.took_one(signs)? {
            let next = part(self)?;
            self.check(next.is_value(), "there is a condition where a value should be")?;
            more.push((arithmetic, next));
        }
        if more.is_empty() {
            return Ok(first);
        }
        self.check(first.is_value(), "there is a condition where a value should be")?;
        Ok(FilterExpression::Reckoned(Box::new(first), more))
    }

    fn signed(&mut self) -> Result<FilterExpression, SyntaxMistake> {
        if self.took_sign("-")? {
            if let Some(FilterWord::Integer(number)) = self.next {
                // The lowest whole number has no opposite.
                let number = 0_i64.checked_sub_unsigned(number);
                let number = number.ok_or_else(|| self.mistake("the number is too low"))?;
                self.advance()?;
                return Ok(FilterExpression::Constant(FilterValue::Integer(number)));
            }
            let number = self.inside(FilterParser::signed)?;
            self.check(number.is_value(), "there is a condition where a value should be")?;
            return Ok(FilterExpression::Negated(Box::new(number)));
        }
        if self.took_sign("+")? {
            let number = self.inside(FilterParser::signed)?;
            self.check(number.is_value(), "there is a condition where a value should be")?;
            return Ok(FilterExpression::Positive(Box::new(number)));
        }
        self.atom()
    }

    fn atom(&mut self) -> Result<FilterExpression, SyntaxMistake> {
        if self.took_sign("(")? {
            let inside = self.inside(FilterParser::any)?;
            self.expect_sign(")")?;
            return Ok(inside);
        }
        if self.took_key("EXISTS")? {
            return self.name_in_brackets().map(FilterExpression::Exists);
        }
        let constant = |value| Ok(FilterExpression::Constant(value));
        let missing = self.mistake("a value or a condition is missing");
        let too_high = self.mistake("the number is too high");
        match &self.next {
            Some(FilterWord::Key("TRUE" | "FALSE" | "NULL"))
            | Some(FilterWord::Name(_) | FilterWord::Quoted(_)) => {}
            Some(FilterWord::Parameter(name)) => {
                let value = self.parameter(name)?;
                self.advance()?;
                return Ok(value);
            }
            Some(FilterWord::Key(_) | FilterWord::Sign(_)) | None => return Err(missing),
            Some(
                FilterWord::Text(_) | FilterWord::Integer(_) | FilterWord::Float(_) | FilterWord::Binary(_),
            ) => {}
        }
        match self.advance()? {
            Some(FilterWord::Key("TRUE")) => constant(FilterValue::Boolean(true)),
            Some(FilterWord::Key("FALSE")) => constant(FilterValue::Boolean(false)),
            Some(FilterWord::Text(text)) => constant(FilterValue::Text(text.into())),
            Some(FilterWord::Integer(number)) => {
                constant(FilterValue::Integer(i64::try_from(number).map_err(|_| too_high)?))
            }
            Some(FilterWord::Float(number)) => constant(FilterValue::Float(number)),
            Some(FilterWord::Binary(bytes)) => constant(FilterValue::Binary(bytes.into())),
            Some(FilterWord::Name(name)) => self.named(name),
            Some(FilterWord::Quoted(name)) => Ok(FilterExpression::Property(self.property(name, false)?)),
            _ => constant(FilterValue::Null),
        }
    }

    /// A property, or what a function says.
    fn named(&mut self, name: String) -> Result<FilterExpression, SyntaxMistake> {
        if !matches!(self.next, Some(FilterWord::Sign("("))) {
            return Ok(FilterExpression::Property(self.property(name, true)?));
        }
        if name.eq_ignore_ascii_case("newid") {
            self.expect_sign("(")?;
            self.expect_sign(")")?;
            return Ok(FilterExpression::NewId);
        }
        if name.eq_ignore_ascii_case("property") || name.eq_ignore_ascii_case("p") {
            return self.name_in_brackets().map(FilterExpression::Property);
        }
        Err(self.mistake(format!("there is no function {name:?}: property(), p() and newid() are")))
    }

    fn name_in_brackets(&mut self) -> Result<Name, SyntaxMistake> {
        self.expect_sign("(")?;
        let name = match self.advance()? {
            Some(FilterWord::Name(name)) => self.property(name, true)?,
            Some(FilterWord::Quoted(name) | FilterWord::Text(name)) => self.property(name, false)?,
            _ => return Err(self.mistake("the name of a property is missing")),
        };
        self.expect_sign(")")?;
        Ok(name)
    }
}
