//! What a name or an expression is worth, and how such values are compared and reckoned with.

use std::borrow::Cow;

use crate::filter::FilterComparison;

/// The value of a property, or of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand<'a> {
    /// There is none, or none that can be compared.
    Null,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(Cow<'a, str>),
}

/// What is done with two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SelectorArithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Operand<'_> {
    /// Whether a comparison holds; unknown with a value that is not there. Values of different kinds are never alike and never
    /// different, and only numbers have an order.
    pub(crate) fn compare(&self, comparison: FilterComparison, other: &Operand<'_>) -> Option<bool> {
        let is_equality = matches!(comparison, FilterComparison::Equal | FilterComparison::Different);
        Some(match (self, other) {
            (Operand::Null, _) | (_, Operand::Null) => return None,
            (Operand::Integer(one), Operand::Integer(other)) => comparison.holds(Some(one.cmp(other))),
            (Operand::Text(one), Operand::Text(other)) => {
                is_equality && comparison.holds(Some(one.cmp(other)))
            }
            (Operand::Boolean(one), Operand::Boolean(other)) => {
                is_equality && comparison.holds(Some(one.cmp(other)))
            }
            _ => match (self.float(), other.float()) {
                (Some(one), Some(other)) => comparison.holds(one.partial_cmp(&other)),
                _ => false,
            },
        })
    }

    /// Reckons with two numbers; nothing comes of anything else, and of a division of whole numbers by zero. Whole numbers
    /// wrap around, as where JMS comes from.
    pub(crate) fn reckon(&self, arithmetic: SelectorArithmetic, other: &Operand<'_>) -> Operand<'static> {
        if let (Operand::Integer(one), Operand::Integer(other)) = (self, other) {
            return match arithmetic {
                SelectorArithmetic::Add => Operand::Integer(one.wrapping_add(*other)),
                SelectorArithmetic::Subtract => Operand::Integer(one.wrapping_sub(*other)),
                SelectorArithmetic::Multiply => Operand::Integer(one.wrapping_mul(*other)),
                SelectorArithmetic::Divide if *other == 0 => Operand::Null,
                SelectorArithmetic::Divide => Operand::Integer(one.wrapping_div(*other)),
            };
        }
        let (Some(one), Some(other)) = (self.float(), other.float()) else { return Operand::Null };
        Operand::Float(match arithmetic {
            SelectorArithmetic::Add => one + other,
            SelectorArithmetic::Subtract => one - other,
            SelectorArithmetic::Multiply => one * other,
            SelectorArithmetic::Divide => one / other,
        })
    }

    /// The number with the other sign.
    pub(crate) fn negated(&self) -> Operand<'static> {
        match self {
            Operand::Integer(number) => Operand::Integer(number.wrapping_neg()),
            Operand::Float(number) => Operand::Float(-number),
            _ => Operand::Null,
        }
    }

    /// Whether it is true; unknown for what is no truth value.
    pub(crate) fn truth(&self) -> Option<bool> {
        match self {
            Operand::Boolean(truth) => Some(*truth),
            _ => None,
        }
    }

    fn float(&self) -> Option<f64> {
        match self {
            Operand::Integer(number) => Some(*number as f64),
            Operand::Float(number) => Some(*number),
            _ => None,
        }
    }
}
