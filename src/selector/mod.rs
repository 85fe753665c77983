//! Selectors: conditions on the properties of a message, in the part of SQL-92 that JMS has for them. Pure text and values: what a
//! name means is told by who asks.

mod condition;
mod operand;
mod parser;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use crate::selector::operand::Operand;
pub(crate) use crate::selector::parser::Selector;
