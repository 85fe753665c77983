//! What a name or an expression is worth, and how such values are compared and reckoned with.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::header::PropertyValue;

/// The value of a property, or of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    /// There is none.
    Null,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(Cow<'a, str>),
    Binary(Cow<'a, [u8]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Different,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Comparison {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Comparison::Equal => ordering.is_eq(),
            Comparison::Different => ordering.is_ne(),
            Comparison::Less => ordering.is_lt(),
            Comparison::LessOrEqual => ordering.is_le(),
            Comparison::Greater => ordering.is_gt(),
            Comparison::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

impl<'a> Value<'a> {
    /// Whether a comparison holds; unknown with what is not there, and between values of different kinds. Text is compared
    /// character by character, whatever the language.
    pub(crate) fn compare(&self, comparison: Comparison, other: &Value<'_>) -> Option<bool> {
        self.ordering(other).map(|ordering| comparison.holds(ordering))
    }

    fn ordering(&self, other: &Value<'_>) -> Option<Ordering> {
        match (self, other) {
            (Value::Integer(one), Value::Integer(other)) => Some(one.cmp(other)),
            (Value::Text(one), Value::Text(other)) => Some(one.cmp(other)),
            (Value::Boolean(one), Value::Boolean(other)) => Some(one.cmp(other)),
            (Value::Binary(one), Value::Binary(other)) => Some(one.cmp(other)),
            _ => self.float()?.partial_cmp(&other.float()?),
        }
    }

    /// Reckons with two numbers, or puts two texts together. Nothing comes of anything else, of a division of whole numbers
    /// by zero, and of a whole number that is too large.
    pub(crate) fn reckon(&self, arithmetic: Arithmetic, other: &Value<'_>) -> Value<'static> {
        match (self, other) {
            (Value::Integer(one), Value::Integer(other)) => {
                let number = match arithmetic {
                    Arithmetic::Add => one.checked_add(*other),
                    Arithmetic::Subtract => one.checked_sub(*other),
                    Arithmetic::Multiply => one.checked_mul(*other),
                    Arithmetic::Divide => one.checked_div(*other),
                    Arithmetic::Remainder => one.checked_rem(*other),
                };
                number.map_or(Value::Null, Value::Integer)
            }
            (Value::Text(one), Value::Text(other)) if arithmetic == Arithmetic::Add => {
                Value::Text(Cow::Owned(format!("{one}{other}")))
            }
            _ => self.reckon_floats(arithmetic, other),
        }
    }

    fn reckon_floats(&self, arithmetic: Arithmetic, other: &Value<'_>) -> Value<'static> {
        let (Some(one), Some(other)) = (self.float(), other.float()) else { return Value::Null };
        Value::Float(match arithmetic {
            Arithmetic::Add => one + other,
            Arithmetic::Subtract => one - other,
            Arithmetic::Multiply => one * other,
            Arithmetic::Divide => one / other,
            Arithmetic::Remainder => one % other,
        })
    }

    /// The number with the other sign.
    pub(crate) fn negated(&self) -> Value<'static> {
        match self {
            Value::Integer(number) => number.checked_neg().map_or(Value::Null, Value::Integer),
            Value::Float(number) => Value::Float(-number),
            _ => Value::Null,
        }
    }

    /// Whether it is true; unknown for what is no truth value.
    pub(crate) fn truth(&self) -> Option<bool> {
        match self {
            Value::Boolean(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The number; a sign changes nothing of what is no number.
    pub(crate) fn number(self) -> Value<'a> {
        match self {
            Value::Integer(_) | Value::Float(_) => self,
            _ => Value::Null,
        }
    }

    fn float(&self) -> Option<f64> {
        match self {
            Value::Integer(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// The value as a property has it.
    pub(crate) fn to_property(&self) -> Option<PropertyValue> {
        Some(match self {
            Value::Null => return None,
            Value::Boolean(truth) => PropertyValue::Boolean(*truth),
            Value::Integer(number) => PropertyValue::Integer(*number),
            Value::Float(number) => PropertyValue::Float(*number),
            Value::Text(text) => PropertyValue::Text(text.to_string()),
            Value::Binary(bytes) => PropertyValue::Binary(bytes.to_vec().into()),
        })
    }
}

impl<'a> From<&'a PropertyValue> for Value<'a> {
    fn from(property: &'a PropertyValue) -> Value<'a> {
        match property {
            PropertyValue::Text(text) => Value::Text(Cow::Borrowed(text)),
            PropertyValue::Integer(number) => Value::Integer(*number),
            PropertyValue::Float(number) => Value::Float(*number),
            PropertyValue::Boolean(truth) => Value::Boolean(*truth),
            PropertyValue::Binary(bytes) => Value::Binary(Cow::Borrowed(bytes)),
        }
    }
}
