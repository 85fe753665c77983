//! Values of messages and of correlation rules, as they are compared.

use crate::filter::FilterValue;

/// A value as it is found by: whole numbers are the same whatever their type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FilterKey {
    Boolean(bool),
    Integer(i64),
    Float(u64),
    Text(String),
    Binary(Vec<u8>),
}

impl FilterKey {
    /// By what a value is found, if there is one.
    pub(crate) fn of(value: FilterValue<'_>) -> Option<FilterKey> {
        // Beyond it a floating-point number is no exact whole one.
        const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
        Some(match value {
            FilterValue::Null => return None,
            FilterValue::Boolean(truth) => FilterKey::Boolean(truth),
            FilterValue::Integer(number) => FilterKey::Integer(number),
            #[allow(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
            FilterValue::Float(number) if number.fract() == 0.0 && number.abs() < WHOLE_MAX => {
                FilterKey::Integer(number as i64)
            }
            FilterValue::Float(number) => FilterKey::Float(number.to_bits()),
            FilterValue::Text(text) => FilterKey::Text(text.into_owned()),
            FilterValue::Binary(bytes) => FilterKey::Binary(bytes.into_owned()),
        })
    }

    /// Whether it is what a value is found by.
    pub(crate) fn is_of(&self, value: FilterValue<'_>) -> bool {
        match (self, value) {
            (FilterKey::Text(known), FilterValue::Text(text)) => *known == text,
            (FilterKey::Binary(known), FilterValue::Binary(bytes)) => *known == *bytes,
            (_, FilterValue::Text(_) | FilterValue::Binary(_)) => false,
            (known, value) => FilterKey::of(value).as_ref() == Some(known),
        }
    }
}
