//! A filter that has been read: what it is worth for a message.

use crate::filter::pattern::LikePattern;
use crate::filter::value::FilterArithmetic;
use crate::filter::value::FilterComparison;
use crate::filter::value::FilterValue;

/// Whose property a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum PropertyScope {
    /// The message's own fields.
    System,
    /// What its sender has added.
    User,
}

/// The name of a property.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name {
    pub(crate) scope: PropertyScope,
    pub(crate) text: String,
}

/// What is known of a message.
pub(crate) trait FilterInput {
    fn property(&self, name: &Name) -> FilterValue<'_>;
    /// An ID that nobody has.
    fn new_id(&self) -> String;
}

/// A condition or a value. Chains are lists, so that a long filter is not a deep one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FilterExpression {
    Constant(FilterValue<'static>),
    Property(Name),
    NewId,
    Negated(Box<FilterExpression>),
    /// A sign that changes nothing of a number.
    Positive(Box<FilterExpression>),
    /// A value, and what is done with it one after the other.
    Reckoned(Box<FilterExpression>, Vec<(FilterArithmetic, FilterExpression)>),
    Compared(Box<FilterExpression>, FilterComparison, Box<FilterExpression>),
    In {
        value: Box<FilterExpression>,
        list: Vec<FilterExpression>,
        is_not: bool,
    },
    Like {
        value: Box<FilterExpression>,
        pattern: LikePattern,
        is_not: bool,
    },
    IsNull {
        name: Name,
        is_not: bool,
    },
    Exists(Name),
    Not(Box<FilterExpression>),
    /// All of them.
    And(Vec<FilterExpression>),
    /// Any of them.
    Or(Vec<FilterExpression>),
}

impl FilterExpression {
    /// Whether it can be true: a name may be that of a truth value.
    pub(crate) fn is_condition(&self) -> bool {
        match self {
            FilterExpression::Constant(value) => matches!(value, FilterValue::Boolean(_) | FilterValue::Null),
            FilterExpression::NewId
            | FilterExpression::Negated(_)
            | FilterExpression::Positive(_)
            | FilterExpression::Reckoned(..) => false,
            _ => true,
        }
    }

    /// Whether it can be a value that is compared or reckoned with.
    pub(crate) fn is_value(&self) -> bool {
        matches!(
            self,
            FilterExpression::Constant(_)
                | FilterExpression::Property(_)
                | FilterExpression::NewId
                | FilterExpression::Negated(_)
                | FilterExpression::Positive(_)
                | FilterExpression::Reckoned(..)
        )
    }

    /// Whether it is true; unknown, where that depends on something that is not there.
    pub(crate) fn holds(&self, known: &dyn FilterInput) -> Option<bool> {
        match self {
            FilterExpression::Not(inside) => inside.holds(known).map(|truth| !truth),
            FilterExpression::And(parts) => all(parts.iter().map(|part| part.holds(known))),
            FilterExpression::Or(parts) => any(parts.iter().map(|part| part.holds(known))),
            FilterExpression::Compared(one, comparison, other) => {
                one.value(known).compare(*comparison, &other.value(known))
            }
            FilterExpression::In { value, list, is_not } => {
                let value = value.value(known);
                let is_one =
                    |one: &FilterExpression| value.compare(FilterComparison::Equal, &one.value(known));
                any(list.iter().map(is_one)).map(|truth| truth != *is_not)
            }
            FilterExpression::Like { value, pattern, is_not } => match value.value(known) {
                FilterValue::Text(text) => Some(pattern.fits(&text) != *is_not),
                _ => None,
            },
            FilterExpression::IsNull { name, is_not } => {
                Some((known.property(name) == FilterValue::Null) != *is_not)
            }
            FilterExpression::Exists(name) => Some(known.property(name) != FilterValue::Null),
            _ => self.value(known).truth(),
        }
    }

    pub(crate) fn value<'k>(&'k self, known: &'k dyn FilterInput) -> FilterValue<'k> {
        match self {
            FilterExpression::Constant(value) => value.clone(),
            FilterExpression::Property(name) => known.property(name),
            FilterExpression::NewId => FilterValue::Text(known.new_id().into()),
            FilterExpression::Negated(number) => number.value(known).negated(),
            FilterExpression::Positive(number) => number.value(known).number(),
            FilterExpression::Reckoned(first, more) => {
                let mut value = first.value(known);
                for (arithmetic, other) in more {
                    value = value.reckon(*arithmetic, other.value(known));
                }
                value
            }
            _ => self.holds(known).map_or(FilterValue::Null, FilterValue::Boolean),
        }
    }
}

/// Whether all are true: one that is false decides, and without one, one that is unknown.
pub(crate) fn all(truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    any(truths.map(|truth| truth.map(|truth| !truth))).map(|none| !none)
}

/// Whether any is true: one that is true decides, and without one, one that is unknown.
pub(crate) fn any(truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut is_known = true;
    for truth in truths {
        match truth {
            Some(true) => return Some(true),
            Some(false) => {}
            None => is_known = false,
        }
    }
    is_known.then_some(false)
}
