//! Reading a selector.

use crate::filter::FilterComparison;
use crate::filter::LikePattern;
use crate::filter::SyntaxMistake;
use crate::filter::WordReader;
use crate::selector::condition::SelectorExpression;
use crate::selector::condition::SelectorInput;
use crate::selector::operand::Operand;
use crate::selector::operand::SelectorArithmetic;
use crate::selector::words::SelectorWord;
use crate::selector::words::SelectorWords;

/// A condition on the properties of a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Selector(SelectorExpression);

impl Selector {
    /// Reads a text.
    ///
    /// # Errors
    /// What is wrong with it, and where; also that it is longer or deeper than it may be.
    pub(crate) fn parse(text: &str) -> Result<Selector, SyntaxMistake> {
        let mut parser = SelectorParser::of(text, SelectorWords::of(text))?;
        let condition = parser.condition()?;
        match &parser.next {
            None => Ok(Selector(condition)),
            Some(_) => Err(parser.mistake("the selector should have ended")),
        }
    }

    /// Whether a message is wanted of which this is known.
    pub(crate) fn selects<'m>(&self, lookup: impl Fn(&str) -> Operand<'m>) -> bool {
        self.0.holds(&lookup as SelectorInput<'_, 'm>) == Some(true)
    }
}

/// A place in a selector.
type SelectorParser<'a> = WordReader<'a, SelectorWords<'a>>;

impl SelectorParser<'_> {
    fn expect_text(&mut self) -> Result<String, SyntaxMistake> {
        match &self.next {
            Some(SelectorWord::Text(text)) => {
                let text = text.clone();
                self.advance()?;
                Ok(text)
            }
            _ => Err(self.mistake("a text between quotes is missing")),
        }
    }

    fn condition(&mut self) -> Result<SelectorExpression, SyntaxMistake> {
        let found = self.any()?;
        self.check(found.is_condition(), "there is a value where a condition should be")?;
        Ok(found)
    }

    fn any(&mut self) -> Result<SelectorExpression, SyntaxMistake> {
        self.chain("OR", Self::all, SelectorExpression::Or)
    }

    fn all(&mut self) -> Result<SelectorExpression, SyntaxMistake> {
        self.chain("AND", Self::negation, SelectorExpression::And)
    }

    /// Conditions with a word between them; one alone may be a value.
    fn chain(
        &mut self,
        key: &str,
        read: impl Fn(&mut Self) -> Result<SelectorExpression, SyntaxMistake>,
        join: impl FnOnce(Vec<SelectorExpression>) -> SelectorExpression,
    ) -> Result<SelectorExpression, SyntaxMistake> {
        let first = read(self)?;
        if !self.is_key(key) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.took_key(key)? {
            parts.push(read(self)?);
        }
        let are_conditions = parts.iter().all(SelectorExpression::is_condition);
        self.check(are_conditions, "AND and OR join conditions, and there is a value")?;
        Ok(join(parts))
    }

    fn negation(&mut self) -> Result<SelectorExpression, SyntaxMistake> {
        if !self.took_key("NOT")? {
            return self.predicate();
        }
        let inside = self.inside(Self::negation)?;
        self.check(inside.is_condition(), "NOT goes before a condition, and a value stands there")?;
        Ok(SelectorExpression::Not(Box::new(inside)))
    }

    fn predicate(&mut self) -> Result<SelectorExpression, SyntaxMistake> {
        let value = self.sum()?;
        if let Some(comparison) = self.comparison()? {
            let other = self.sum()?;
            return Ok(SelectorExpression::Compared(Box::new(value), comparison, Box::new(other)));
        }
        if self.took_key("IS")? {
            let is_not = self.took_key("NOT")?;
            return match (self.took_key("NULL")?, value) {
                (true, SelectorExpression::Name(name)) => Ok(SelectorExpression::IsNull { name, is_not }),
                (true, _) => Err(self.mistake("IS NULL goes behind a name")),
                (false, _) => Err(self.mistake("NULL is missing after IS")),
            };
        }
        let is_not = self.took_key("NOT")?;
        if self.took_key("BETWEEN")? {
            return self.between(value, is_not);
        }
        let is_in = self.is_key("IN");
        if is_in || self.is_key("LIKE") {
            self.advance()?;
            let SelectorExpression::Name(name) = value else {
                return Err(self.mistake("IN and LIKE go behind a name"));
            };
            return if is_in { self.among(name, is_not) } else { self.like(name, is_not) };
        }
        self.check(!is_not, "BETWEEN, IN or LIKE is missing after NOT")?;
        Ok(value)
    }

    fn comparison(&mut self) -> Result<Option<FilterComparison>, SyntaxMistake> {
        let Some(SelectorWord::Sign(sign)) = &self.next else { return Ok(None) };
        let comparison = match *sign {
            "=" => FilterComparison::Equal,
            "<>" => FilterComparison::Different,
            "<" => FilterComparison::Less,
            "<=" => FilterComparison::LessOrEqual,
            ">" => FilterComparison::Greater,
            ">=" => FilterComparison::GreaterOrEqual,
            _ => return Ok(None),
        };
        self.advance()?;
        Ok(Some(comparison))
    }

    fn between(
        &mut self,
        value: SelectorExpression,
        is_not: bool,
    ) -> Result<SelectorExpression, SyntaxMistake> {
        let low = self.sum()?;
        let has_both = self.took_key("AND")?;
        self.check(has_both, "AND is missing after BETWEEN")?;
        let high = self.sum()?;
        let are_numbers = value.is_number() && low.is_number() && high.is_number();
        self.check(are_numbers, "BETWEEN compares numbers")?;
        let [value, low, high] = [value, low, high].map(Box::new);
        Ok(SelectorExpression::Between { value, low, high, is_not })
    }

    fn among(&mut self, name: String, is_not: bool) -> Result<SelectorExpression, SyntaxMistake> {
        self.expect_sign("(")?;
        let mut texts = vec![self.expect_text()?];
        while self.took_sign(",")? {
            texts.push(self.expect_text()?);
        }
        self.expect_sign(")")?;
        Ok(SelectorExpression::In { name, texts, is_not })
    }

    fn like(&mut self, name: String, is_not: bool) -> Result<SelectorExpression, SyntaxMistake> {
        let pattern = self.expect_text()?;
        let mut escape = None;
        if self.took_key("ESCAPE")? {
            let text = self.expect_text()?;
            let mut characters = text.chars();
            escape = characters.next().filter(|_| characters.next().is_none());
            self.check(escape.is_some(), "ESCAPE is followed by one character")?;
        }
        let pattern = LikePattern::read(&pattern, escape).map_err(|problem| self.mistake(problem))?;
        Ok(SelectorExpression::Like { name, pattern, is_not })
    }

    fn sum(&mut self) -> Result<SelectorExpression, SyntaxMistake> {
        let signs = [("+", SelectorArithmetic::Add), ("-", SelectorArithmetic::Subtract)];
        self.reckoning(signs, Self::product)
    }

    fn product(&mut self) -> Result<SelectorExpression, SyntaxMistake> {
        let signs = [("*", SelectorArithmetic::Multiply), ("/", SelectorArithmetic::Divide)];
        self.reckoning(signs, Self::signed)
    }

    fn reckoning(
        &mut self,
        signs: [(&str, SelectorArithmetic); 2],
        read: impl Fn(&mut Self) -> Result<SelectorExpression, SyntaxMistake>,
    ) -> Result<SelectorExpression, SyntaxMistake> {
        let first = read(self)?;
        let mut more = Vec::new();
        while let Some(SelectorWord::Sign(next)) = &self.next
            && let Some((_, arithmetic)) = signs.into_iter().find(|(sign, _)| sign == next)
        {
            self.advance()?;
            more.push((arithmetic, read(self)?));
        }
        if more.is_empty() {
            return Ok(first);
        }
        let are_numbers = first.is_number() && more.iter().all(|(_, other)| other.is_number());
        self.check(are_numbers, "only numbers can be reckoned with")?;
        Ok(SelectorExpression::Reckoned(Box::new(first), more))
    }

    fn signed(&mut self) -> Result<SelectorExpression, SyntaxMistake> {
        if self.took_sign("+")? {
            let inside = self.inside(Self::signed)?;
            self.check(inside.is_number(), "only a number has a sign")?;
            return Ok(inside);
        }
        if !self.took_sign("-")? {
            return self.single();
        }
        // The least whole number is one further from zero than the greatest.
        if self.next == Some(SelectorWord::Integer(i64::MIN.unsigned_abs())) {
            self.advance()?;
            return Ok(SelectorExpression::Integer(i64::MIN));
        }
        let inside = self.inside(Self::signed)?;
        self.check(inside.is_number(), "only a number has a sign")?;
        Ok(SelectorExpression::Negated(Box::new(inside)))
    }

    fn single(&mut self) -> Result<SelectorExpression, SyntaxMistake> {
        let found = match &self.next {
            Some(SelectorWord::Name(name)) => SelectorExpression::Name((*name).to_owned()),
            Some(SelectorWord::Text(text)) => SelectorExpression::Text(text.clone()),
            Some(SelectorWord::Key("TRUE")) => SelectorExpression::Boolean(true),
            Some(SelectorWord::Key("FALSE")) => SelectorExpression::Boolean(false),
            Some(SelectorWord::Float(number)) => SelectorExpression::Float(*number),
            Some(SelectorWord::Integer(number)) => match i64::try_from(*number) {
                Ok(number) => SelectorExpression::Integer(number),
                Err(_) => return Err(self.mistake(format!("{number} is larger than any whole number"))),
            },
            Some(SelectorWord::Sign("(")) => {
                self.advance()?;
                let found = self.inside(Self::any)?;
                self.expect_sign(")")?;
                return Ok(found);
            }
            Some(_) => return Err(self.mistake("a name, a value or a parenthesis is missing")),
            None => return Err(self.mistake("the selector has ended where it should go on")),
        };
        self.advance()?;
        Ok(found)
    }
}
