//! A selector that has been read: what it is worth for a message.

use std::borrow::Cow;

use crate::filter::Pattern;
use crate::selector::operand::Arithmetic;
use crate::selector::operand::Comparison;
use crate::selector::operand::Operand;

/// What is known of a name.
pub(crate) type Lookup<'a, 'm> = &'a dyn Fn(&str) -> Operand<'m>;

/// A condition or a value. Chains are lists, so that a long selector is not a deep one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Name(String),
    Negated(Box<Expression>),
    /// A value, and what is done with it one after the other.
    Reckoned(Box<Expression>, Vec<(Arithmetic, Expression)>),
    Compared(Box<Expression>, Comparison, Box<Expression>),
    Between {
        value: Box<Expression>,
        low: Box<Expression>,
        high: Box<Expression>,
        is_not: bool,
    },
    In {
        name: String,
        texts: Vec<String>,
        is_not: bool,
    },
    Like {
        name: String,
        pattern: Pattern,
        is_not: bool,
    },
    IsNull {
        name: String,
        is_not: bool,
    },
    Not(Box<Expression>),
    /// All of them.
    And(Vec<Expression>),
    /// Any of them.
    Or(Vec<Expression>),
}

impl Expression {
    /// Whether it can be true: a name may be that of a truth value.
    pub(crate) fn is_condition(&self) -> bool {
        match self {
            Expression::Text(_)
            | Expression::Integer(_)
            | Expression::Float(_)
            | Expression::Negated(_)
            | Expression::Reckoned(..) => false,
            Expression::Boolean(_)
            | Expression::Name(_)
            | Expression::Compared(..)
            | Expression::Between { .. }
            | Expression::In { .. }
            | Expression::Like { .. }
            | Expression::IsNull { .. }
            | Expression::Not(_)
            | Expression::And(_)
            | Expression::Or(_) => true,
        }
    }

    /// Whether it can be a number: a name may be that of one.
    pub(crate) fn is_number(&self) -> bool {
        matches!(
            self,
            Expression::Integer(_)
                | Expression::Float(_)
                | Expression::Name(_)
                | Expression::Negated(_)
                | Expression::Reckoned(..)
        )
    }

    /// Whether it is true; unknown, where that depends on something that is not there.
    pub(crate) fn holds(&self, lookup: Lookup<'_, '_>) -> Option<bool> {
        match self {
            Expression::Not(inside) => inside.holds(lookup).map(|truth| !truth),
            Expression::And(parts) => all(parts.iter().map(|part| part.holds(lookup))),
            Expression::Or(parts) => {
                all(parts.iter().map(|part| part.holds(lookup).map(|truth| !truth))).map(|none| !none)
            }
            Expression::Compared(one, comparison, other) => {
                one.value(lookup).compare(*comparison, &other.value(lookup))
            }
            Expression::Between { value, low, high, is_not } => {
                let value = value.value(lookup);
                let above = value.compare(Comparison::GreaterOrEqual, &low.value(lookup));
                let below = value.compare(Comparison::LessOrEqual, &high.value(lookup));
                all([above, below].into_iter()).map(|truth| truth != *is_not)
            }
            Expression::In { name, texts, is_not } => {
                of_text(&lookup(name), |text| texts.iter().any(|one| one == text) != *is_not)
            }
            Expression::Like { name, pattern, is_not } => {
                of_text(&lookup(name), |text| pattern.fits(text) != *is_not)
            }
            Expression::IsNull { name, is_not } => Some((lookup(name) == Operand::Null) != *is_not),
            _ => self.value(lookup).truth(),
        }
    }

    fn value<'v, 'm: 'v>(&'v self, lookup: Lookup<'_, 'm>) -> Operand<'v> {
        match self {
            Expression::Text(text) => Operand::Text(Cow::Borrowed(text)),
            Expression::Integer(number) => Operand::Integer(*number),
            Expression::Float(number) => Operand::Float(*number),
            Expression::Boolean(truth) => Operand::Boolean(*truth),
            Expression::Name(name) => lookup(name),
            Expression::Negated(number) => number.value(lookup).negated(),
            Expression::Reckoned(first, more) => {
                let mut value = first.value(lookup);
                for (arithmetic, other) in more {
                    value = value.reckon(*arithmetic, &other.value(lookup));
                }
                value
            }
            _ => self.holds(lookup).map_or(Operand::Null, Operand::Boolean),
        }
    }
}

/// Whether all are true: one that is false decides, and without one, one that is unknown.
fn all(truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut is_known = true;
    for truth in truths {
        match truth {
            Some(false) => return Some(false),
            Some(true) => {}
            None => is_known = false,
        }
    }
    is_known.then_some(true)
}

/// Judges a text; what is no text is like none, and is not unlike any either.
fn of_text(value: &Operand<'_>, judge: impl FnOnce(&str) -> bool) -> Option<bool> {
    match value {
        Operand::Null => None,
        Operand::Text(text) => Some(judge(text)),
        _ => Some(false),
    }
}
