//! The grammar of conditions and values.

use crate::filter::expression::Expression;
use crate::filter::expression::Name;
use crate::filter::parser::Mistake;
use crate::filter::parser::Parser;
use crate::filter::pattern::Pattern;
use crate::filter::value::Arithmetic;
use crate::filter::value::Comparison;
use crate::filter::value::Value;
use crate::filter::words::Word;

const COMPARISONS: [(&str, Comparison); 7] = [
    ("=", Comparison::Equal),
    ("<>", Comparison::Different),
    ("!=", Comparison::Different),
    ("<", Comparison::Less),
    ("<=", Comparison::LessOrEqual),
    (">", Comparison::Greater),
    (">=", Comparison::GreaterOrEqual),
];

const SUMS: [(&str, Arithmetic); 2] = [("+", Arithmetic::Add), ("-", Arithmetic::Subtract)];

const PRODUCTS: [(&str, Arithmetic); 3] =
    [("*", Arithmetic::Multiply), ("/", Arithmetic::Divide), ("%", Arithmetic::Remainder)];

impl Parser<'_> {
    pub(crate) fn condition(&mut self) -> Result<Expression, Mistake> {
        let found = self.any()?;
        self.check(found.is_condition(), "there is a value where a condition should be")?;
        Ok(found)
    }

    /// A value, and no condition.
    pub(crate) fn plain_value(&mut self) -> Result<Expression, Mistake> {
        let found = self.sum()?;
        self.check(found.is_value(), "there is a condition where a value should be")?;
        Ok(found)
    }

    fn check(&self, is_right: bool, problem: &str) -> Result<(), Mistake> {
        if is_right { Ok(()) } else { Err(self.mistake(problem)) }
    }

    fn any(&mut self) -> Result<Expression, Mistake> {
        self.chain("OR", Parser::all, Expression::Or)
    }

    fn all(&mut self) -> Result<Expression, Mistake> {
        self.chain("AND", Parser::not, Expression::And)
    }

    fn chain(
        &mut self,
        key: &str,
        part: fn(&mut Self) -> Result<Expression, Mistake>,
        whole: fn(Vec<Expression>) -> Expression,
    ) -> Result<Expression, Mistake> {
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

    fn not(&mut self) -> Result<Expression, Mistake> {
        if !self.took_key("NOT")? {
            return self.test();
        }
        let inside = self.inside(Parser::not)?;
        self.check(inside.is_condition(), "there is a value where a condition should be")?;
        Ok(Expression::Not(Box::new(inside)))
    }

    /// A value, and what is asked of it.
    fn test(&mut self) -> Result<Expression, Mistake> {
        let value = self.sum()?;
        if let Some(comparison) = self.took_one(&COMPARISONS)? {
            self.check(value.is_value(), "there is a condition where a value should be")?;
            let other = self.plain_value()?;
            return Ok(Expression::Compared(Box::new(value), comparison, Box::new(other)));
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

    fn is_null(&mut self, value: Expression) -> Result<Expression, Mistake> {
        let Expression::Property(name) = value else {
            return Err(self.mistake("only of a property can be asked whether it is NULL"));
        };
        let is_not = self.took_key("NOT")?;
        match self.took_key("NULL")? {
            true => Ok(Expression::IsNull { name, is_not }),
            false => Err(self.mistake("NULL is missing")),
        }
    }

    fn list(&mut self, value: Expression, is_not: bool) -> Result<Expression, Mistake> {
        self.expect_sign("(")?;
        let mut list = vec![self.inside(Parser::plain_value)?];
        while self.took_sign(",")? {
            list.push(self.inside(Parser::plain_value)?);
        }
        self.expect_sign(")")?;
        Ok(Expression::In { value: Box::new(value), list, is_not })
    }

    fn like(&mut self, value: Expression, is_not: bool) -> Result<Expression, Mistake> {
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
        let pattern = Pattern::read(&pattern, character).map_err(|problem| self.mistake(problem))?;
        Ok(Expression::Like { value: Box::new(value), pattern, is_not })
    }

    /// A text that does not depend on the message.
    fn text(&mut self, what: &str) -> Result<String, Mistake> {
        match self.atom()? {
            Expression::Constant(Value::Text(text)) => Ok(text.into_owned()),
            _ => Err(self.mistake(format!("{what} is a text between quotes, or a parameter that is one"))),
        }
    }

    fn sum(&mut self) -> Result<Expression, Mistake> {
        self.reckoned(&SUMS, Parser::product)
    }

    fn product(&mut self) -> Result<Expression, Mistake> {
        self.reckoned(&PRODUCTS, Parser::signed)
    }

    fn reckoned(
        &mut self,
        signs: &[(&str, Arithmetic)],
        part: fn(&mut Self) -> Result<Expression, Mistake>,
    ) -> Result<Expression, Mistake> {
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
        Ok(Expression::Reckoned(Box::new(first), more))
    }

    fn signed(&mut self) -> Result<Expression, Mistake> {
        if self.took_sign("-")? {
            if let Some(Word::Integer(number)) = self.next {
                // The lowest whole number has no opposite.
                let number = 0_i64.checked_sub_unsigned(number);
                let number = number.ok_or_else(|| self.mistake("the number is too low"))?;
                self.advance()?;
                return Ok(Expression::Constant(Value::Integer(number)));
            }
            let number = self.inside(Parser::signed)?;
            self.check(number.is_value(), "there is a condition where a value should be")?;
            return Ok(Expression::Negated(Box::new(number)));
        }
        if self.took_sign("+")? {
            let number = self.inside(Parser::signed)?;
            self.check(number.is_value(), "there is a condition where a value should be")?;
            return Ok(Expression::Positive(Box::new(number)));
        }
        self.atom()
    }

    fn atom(&mut self) -> Result<Expression, Mistake> {
        if self.took_sign("(")? {
            let inside = self.inside(Parser::any)?;
            self.expect_sign(")")?;
            return Ok(inside);
        }
        if self.took_key("EXISTS")? {
            return self.name_in_brackets().map(Expression::Exists);
        }
        let constant = |value| Ok(Expression::Constant(value));
        let missing = self.mistake("a value or a condition is missing");
        let too_high = self.mistake("the number is too high");
        match &self.next {
            Some(Word::Key("TRUE" | "FALSE" | "NULL")) | Some(Word::Name(_) | Word::Quoted(_)) => {}
            Some(Word::Parameter(name)) => {
                let value = self.parameter(name)?;
                self.advance()?;
                return Ok(value);
            }
            Some(Word::Key(_) | Word::Sign(_)) | None => return Err(missing),
            Some(Word::Text(_) | Word::Integer(_) | Word::Float(_) | Word::Binary(_)) => {}
        }
        match self.advance()? {
            Some(Word::Key("TRUE")) => constant(Value::Boolean(true)),
            Some(Word::Key("FALSE")) => constant(Value::Boolean(false)),
            Some(Word::Text(text)) => constant(Value::Text(text.into())),
            Some(Word::Integer(number)) => {
                constant(Value::Integer(i64::try_from(number).map_err(|_| too_high)?))
            }
            Some(Word::Float(number)) => constant(Value::Float(number)),
            Some(Word::Binary(bytes)) => constant(Value::Binary(bytes.into())),
            Some(Word::Name(name)) => self.named(name),
            Some(Word::Quoted(name)) => Ok(Expression::Property(self.property(name, false)?)),
            _ => constant(Value::Null),
        }
    }

    /// A property, or what a function says.
    fn named(&mut self, name: String) -> Result<Expression, Mistake> {
        if !matches!(self.next, Some(Word::Sign("("))) {
            return Ok(Expression::Property(self.property(name, true)?));
        }
        if name.eq_ignore_ascii_case("newid") {
            self.expect_sign("(")?;
            self.expect_sign(")")?;
            return Ok(Expression::NewId);
        }
        if name.eq_ignore_ascii_case("property") || name.eq_ignore_ascii_case("p") {
            return self.name_in_brackets().map(Expression::Property);
        }
        Err(self.mistake(format!("there is no function {name:?}: property(), p() and newid() are")))
    }

    fn name_in_brackets(&mut self) -> Result<Name, Mistake> {
        self.expect_sign("(")?;
        let name = match self.advance()? {
            Some(Word::Name(name)) => self.property(name, true)?,
            Some(Word::Quoted(name) | Word::Text(name)) => self.property(name, false)?,
            _ => return Err(self.mistake("the name of a property is missing")),
        };
        self.expect_sign(")")?;
        Ok(name)
    }
}
