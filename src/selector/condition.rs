//! A selector that has been read: what it is worth for a message.

use std::borrow::Cow;

use crate::filter::FilterComparison;
use crate::filter::LikePattern;
use crate::filter::all;
use crate::filter::any;
use crate::selector::operand::Operand;
use crate::selector::operand::SelectorArithmetic;

/// What is known of a name.
pub(crate) type SelectorInput<'a, 'm> = &'a dyn Fn(&str) -> Operand<'m>;

/// A condition or a value. Chains are lists, so that a long selector is not a deep one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SelectorExpression {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Name(String),
    Negated(Box<SelectorExpression>),
    /// A value, and what is done with it one after the other.
    Reckoned(Box<SelectorExpression>, Vec<(SelectorArithmetic, SelectorExpression)>),
    Compared(Box<SelectorExpression>, FilterComparison, Box<SelectorExpression>),
    Between {
        value: Box<SelectorExpression>,
        low: Box<SelectorExpression>,
        high: Box<SelectorExpression>,
        is_not: bool,
    },
    In {
        name: String,
        texts: Vec<String>,
        is_not: bool,
    },
    Like {
        name: String,
        pattern: LikePattern,
        is_not: bool,
    },
    IsNull {
        name: String,
        is_not: bool,
    },
    Not(Box<SelectorExpression>),
    /// All of them.
    And(Vec<SelectorExpression>),
    /// Any of them.
    Or(Vec<SelectorExpression>),
}

impl SelectorExpression {
    /// Whether it can be true: a name may be that of a truth value.
    pub(crate) fn is_condition(&self) -> bool {
        match self {
            SelectorExpression::Text(_)
            | SelectorExpression::Integer(_)
            | SelectorExpression::Float(_)
            | SelectorExpression::Negated(_)
            | SelectorExpression::Reckoned(..) => false,
            SelectorExpression::Boolean(_)
            | SelectorExpression::Name(_)
            | SelectorExpression::Compared(..)
            | SelectorExpression::Between { .. }
            | SelectorExpression::In { .. }
            | SelectorExpression::Like { .. }
            | SelectorExpression::IsNull { .. }
            | SelectorExpression::Not(_)
            | SelectorExpression::And(_)
            | SelectorExpression::Or(_) => true,
        }
    }

    /// Whether it can be a number: a name may be that of one.
    pub(crate) fn is_number(&self) -> bool {
        matches!(
            self,
            SelectorExpression::Integer(_)
                | SelectorExpression::Float(_)
                | SelectorExpression::Name(_)
                | SelectorExpression::Negated(_)
                | SelectorExpression::Reckoned(..)
        )
    }

    /// Whether it is true; unknown, where that depends on something that is not there.
    pub(crate) fn holds(&self, lookup: SelectorInput<'_, '_>) -> Option<bool> {
        match self {
            SelectorExpression::Not(inside) => inside.holds(lookup).map(|truth| !truth),
            SelectorExpression::And(parts) => all(parts.iter().map(|part| part.holds(lookup))),
            SelectorExpression::Or(parts) => any(parts.iter().map(|part| part.holds(lookup))),
            SelectorExpression::Compared(one, comparison, other) => {
                one.value(lookup).compare(*comparison, &other.value(lookup))
            }
            SelectorExpression::Between { value, low, high, is_not } => {
                let (value, low, high) = (value.value(lookup), low.value(lookup), high.value(lookup));
                let both = |with_low, with_high| {
                    [value.compare(with_low, &low), value.compare(with_high, &high)].into_iter()
                };
                // What is no number is neither between numbers nor beside them.
                match is_not {
                    false => all(both(FilterComparison::GreaterOrEqual, FilterComparison::LessOrEqual)),
                    true => any(both(FilterComparison::Less, FilterComparison::Greater)),
                }
            }
            SelectorExpression::In { name, texts, is_not } => {
                of_text(&lookup(name), |text| texts.iter().any(|one| one == text) != *is_not)
            }
            SelectorExpression::Like { name, pattern, is_not } => {
                of_text(&lookup(name), |text| pattern.fits(text) != *is_not)
            }
            SelectorExpression::IsNull { name, is_not } => Some((lookup(name) == Operand::Null) != *is_not),
            _ => self.value(lookup).truth(),
        }
    }

    fn value<'v, 'm: 'v>(&'v self, lookup: SelectorInput<'_, 'm>) -> Operand<'v> {
        match self {
            SelectorExpression::Text(text) => Operand::Text(Cow::Borrowed(text)),
            SelectorExpression::Integer(number) => Operand::Integer(*number),
            SelectorExpression::Float(number) => Operand::Float(*number),
            SelectorExpression::Boolean(truth) => Operand::Boolean(*truth),
            SelectorExpression::Name(name) => lookup(name),
            SelectorExpression::Negated(number) => number.value(lookup).negated(),
            SelectorExpression::Reckoned(first, more) => {
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

/// Judges a text; what is no text is like none, and is not unlike any either.
fn of_text(value: &Operand<'_>, judge: impl FnOnce(&str) -> bool) -> Option<bool> {
    match value {
        Operand::Null => None,
        Operand::Text(text) => Some(judge(text)),
        _ => Some(false),
    }
}
