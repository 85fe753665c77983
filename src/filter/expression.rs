//! A filter that has been read: what it is worth for a message.

use crate::filter::pattern::Pattern;
use crate::filter::value::Arithmetic;
use crate::filter::value::Comparison;
use crate::filter::value::Value;

/// Whose property a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scope {
    /// The message's own fields.
    System,
    /// What its sender has added.
    User,
}

/// The name of a property.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name {
    pub(crate) scope: Scope,
    pub(crate) text: String,
}

/// What is known of a message.
pub(crate) trait Known {
    fn property(&self, name: &Name) -> Value<'_>;
    /// An ID that nobody has.
    fn new_id(&self) -> String;
}

/// A condition or a value. Chains are lists, so that a long filter is not a deep one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    Constant(Value<'static>),
    Property(Name),
    NewId,
    Negated(Box<Expression>),
    /// A sign that changes nothing of a number.
    Positive(Box<Expression>),
    /// A value, and what is done with it one after the other.
    Reckoned(Box<Expression>, Vec<(Arithmetic, Expression)>),
    Compared(Box<Expression>, Comparison, Box<Expression>),
    In {
        value: Box<Expression>,
        list: Vec<Expression>,
        is_not: bool,
    },
    Like {
        value: Box<Expression>,
        pattern: Pattern,
        is_not: bool,
    },
    IsNull {
        name: Name,
        is_not: bool,
    },
    Exists(Name),
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
            Expression::Constant(value) => matches!(value, Value::Boolean(_) | Value::Null),
            Expression::NewId
            | Expression::Negated(_)
            | Expression::Positive(_)
            | Expression::Reckoned(..) => false,
            _ => true,
        }
    }

    /// Whether it can be a value that is compared or reckoned with.
    pub(crate) fn is_value(&self) -> bool {
        matches!(
            self,
            Expression::Constant(_)
                | Expression::Property(_)
                | Expression::NewId
                | Expression::Negated(_)
                | Expression::Positive(_)
                | Expression::Reckoned(..)
        )
    }

    /// Whether it is true; unknown, where that depends on something that is not there.
    pub(crate) fn holds(&self, known: &dyn Known) -> Option<bool> {
        match self {
            Expression::Not(inside) => inside.holds(known).map(|truth| !truth),
            Expression::And(parts) => all(parts.iter().map(|part| part.holds(known))),
            Expression::Or(parts) => any(parts.iter().map(|part| part.holds(known))),
            Expression::Compared(one, comparison, other) => {
                one.value(known).compare(*comparison, &other.value(known))
            }
            Expression::In { value, list, is_not } => {
                let value = value.value(known);
                let is_one = |one: &Expression| value.compare(Comparison::Equal, &one.value(known));
                any(list.iter().map(is_one)).map(|truth| truth != *is_not)
            }
            Expression::Like { value, pattern, is_not } => match value.value(known) {
                Value::Text(text) => Some(pattern.fits(&text) != *is_not),
                _ => None,
            },
            Expression::IsNull { name, is_not } => Some((known.property(name) == Value::Null) != *is_not),
            Expression::Exists(name) => Some(known.property(name) != Value::Null),
            _ => self.value(known).truth(),
        }
    }

    pub(crate) fn value<'k>(&'k self, known: &'k dyn Known) -> Value<'k> {
        match self {
            Expression::Constant(value) => value.clone(),
            Expression::Property(name) => known.property(name),
            Expression::NewId => Value::Text(known.new_id().into()),
            Expression::Negated(number) => number.value(known).negated(),
            Expression::Positive(number) => number.value(known).number(),
            Expression::Reckoned(first, more) => {
                let mut value = first.value(known);
                for (arithmetic, other) in more {
                    value = value.reckon(*arithmetic, &other.value(known));
                }
                value
            }
            _ => self.holds(known).map_or(Value::Null, Value::Boolean),
        }
    }
}

/// Whether all are true: one that is false decides, and without one, one that is unknown.
fn all(truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    any(truths.map(|truth| truth.map(|truth| !truth))).map(|none| !none)
}

/// Whether any is true: one that is true decides, and without one, one that is unknown.
fn any(truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
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
