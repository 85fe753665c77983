//! What a name or an expression is worth, and how such values are compared and reckoned with.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::header::PropertyValue;
use crate::limits;

/// The value of a property, or of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FilterValue<'a> {
    /// There is none.
    Null,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(Cow<'a, str>),
    Binary(Cow<'a, [u8]>),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilterComparison {
    Equal,
    Different,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilterArithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl FilterComparison {
    /// Whether it holds between two values, which may have no order, as what is no number has none.
    pub(crate) fn holds(self, ordering: Option<Ordering>) -> bool {
        match self {
            FilterComparison::Equal => ordering == Some(Ordering::Equal),
            FilterComparison::Different => ordering != Some(Ordering::Equal),
            FilterComparison::Less => ordering == Some(Ordering::Less),
            FilterComparison::LessOrEqual => ordering.is_some_and(Ordering::is_le),
            FilterComparison::Greater => ordering == Some(Ordering::Greater),
            FilterComparison::GreaterOrEqual => ordering.is_some_and(Ordering::is_ge),
        }
    }
}

impl<'a> FilterValue<'a> {
    /// Text, or nothing where there is none.
    pub(crate) fn of_text(text: Option<&'a str>) -> FilterValue<'a> {
        text.map_or(FilterValue::Null, |text| FilterValue::Text(Cow::Borrowed(text)))
    }

    /// The same, whatever becomes of where it was found.
    pub(crate) fn into_owned(self) -> FilterValue<'static> {
        match self {
            FilterValue::Null => FilterValue::Null,
            FilterValue::Boolean(truth) => FilterValue::Boolean(truth),
            FilterValue::Integer(number) => FilterValue::Integer(number),
            FilterValue::Float(number) => FilterValue::Float(number),
            FilterValue::Text(text) => FilterValue::Text(text.into_owned().into()),
            FilterValue::Binary(bytes) => FilterValue::Binary(bytes.into_owned().into()),
        }
    }

    /// Whether a comparison holds; unknown with what is not there, and between values of different kinds. Text is compared
    /// character by character, whatever the language.
    pub(crate) fn compare(&self, comparison: FilterComparison, other: &FilterValue<'_>) -> Option<bool> {
        self.ordering(other).map(|ordering| comparison.holds(Some(ordering)))
    }

    fn ordering(&self, other: &FilterValue<'_>) -> Option<Ordering> {
        match (self, other) {
            (FilterValue::Integer(one), FilterValue::Integer(other)) => Some(one.cmp(other)),
            (FilterValue::Text(one), FilterValue::Text(other)) => Some(one.cmp(other)),
            (FilterValue::Boolean(one), FilterValue::Boolean(other)) => Some(one.cmp(other)),
            (FilterValue::Binary(one), FilterValue::Binary(other)) => Some(one.cmp(other)),
            _ => self.float()?.partial_cmp(&other.float()?),
        }
    }

    /// Reckons with two numbers, or puts two texts together. Nothing comes of anything else, of a division of whole numbers
    /// by zero, and of a whole number that is too large.
    pub(crate) fn reckon(self, arithmetic: FilterArithmetic, other: FilterValue<'a>) -> FilterValue<'a> {
        match (self, other) {
            (FilterValue::Integer(one), FilterValue::Integer(other)) => {
                let number = match arithmetic {
                    FilterArithmetic::Add => one.checked_add(other),
                    FilterArithmetic::Subtract => one.checked_sub(other),
                    FilterArithmetic::Multiply => one.checked_mul(other),
                    FilterArithmetic::Divide => one.checked_div(other),
                    FilterArithmetic::Remainder => one.checked_rem(other),
                };
                number.map_or(FilterValue::Null, FilterValue::Integer)
            }
            (FilterValue::Text(one), FilterValue::Text(other)) if arithmetic == FilterArithmetic::Add => {
                FilterValue::Text(put_together(one, other))
            }
            (one, other) => one.reckon_floats(arithmetic, &other),
        }
    }

    fn reckon_floats(&self, arithmetic: FilterArithmetic, other: &FilterValue<'_>) -> FilterValue<'static> {
        let (Some(one), Some(other)) = (self.float(), other.float()) else { return FilterValue::Null };
        FilterValue::Float(match arithmetic {
            FilterArithmetic::Add => one + other,
            FilterArithmetic::Subtract => one - other,
            FilterArithmetic::Multiply => one * other,
            FilterArithmetic::Divide => one / other,
            FilterArithmetic::Remainder => one % other,
        })
    }

    /// The number with the other sign.
    pub(crate) fn negated(&self) -> FilterValue<'static> {
        match self {
            FilterValue::Integer(number) => {
                number.checked_neg().map_or(FilterValue::Null, FilterValue::Integer)
            }
            FilterValue::Float(number) => FilterValue::Float(-number),
            _ => FilterValue::Null,
        }
    }

    /// Whether it is true; unknown for what is no truth value.
    pub(crate) fn truth(&self) -> Option<bool> {
        match self {
            FilterValue::Boolean(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The number; a sign changes nothing of what is no number.
    pub(crate) fn number(self) -> FilterValue<'a> {
        match self {
            FilterValue::Integer(_) | FilterValue::Float(_) => self,
            _ => FilterValue::Null,
        }
    }

    fn float(&self) -> Option<f64> {
        match self {
            FilterValue::Integer(number) => Some(*number as f64),
            FilterValue::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// The value as a property has it.
    pub(crate) fn to_property(&self) -> Option<PropertyValue> {
        Some(match self {
            FilterValue::Null => return None,
            FilterValue::Boolean(truth) => PropertyValue::Boolean(*truth),
            FilterValue::Integer(number) => PropertyValue::Integer(*number),
            FilterValue::Float(number) => PropertyValue::Float(*number),
            FilterValue::Text(text) => PropertyValue::Text(text.to_string()),
            FilterValue::Binary(bytes) => PropertyValue::Binary(bytes.to_vec().into()),
        })
    }
}

/// Puts two texts together. One that no message can have grows no further, so that a short rule cannot ask for more than there is
/// memory.
fn put_together<'a>(one: Cow<'a, str>, other: Cow<'a, str>) -> Cow<'a, str> {
    let is_too_long = |text: &str| text.len() > limits::PROPERTIES_BYTES_MAX;
    match (is_too_long(&one), is_too_long(&other)) {
        (true, _) => one,
        (_, true) => other,
        _ => {
            let mut both = one.into_owned();
            both.push_str(&other);
            Cow::Owned(both)
        }
    }
}

impl<'a> From<&'a PropertyValue> for FilterValue<'a> {
    fn from(property: &'a PropertyValue) -> FilterValue<'a> {
        match property {
            PropertyValue::Text(text) => FilterValue::Text(Cow::Borrowed(text)),
            PropertyValue::Integer(number) => FilterValue::Integer(*number),
            PropertyValue::Float(number) => FilterValue::Float(*number),
            PropertyValue::Boolean(truth) => FilterValue::Boolean(*truth),
            PropertyValue::Binary(bytes) => FilterValue::Binary(Cow::Borrowed(bytes)),
        }
    }
}
