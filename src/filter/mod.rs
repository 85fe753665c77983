//! Filters: which messages a subscription gets, and what its rules change of them. The SQL is the part of SQL-92 that Service Bus has
//! for it. Pure text and values: what a name means is told by who asks.

mod action;
mod expression;
mod grammar;
mod lexer;
#[cfg(test)]
mod naive;
mod parser;
mod pattern;
#[cfg(test)]
mod tests;
mod value;
mod word_reader;
mod words;

pub(crate) use crate::filter::action::Action;
pub(crate) use crate::filter::action::ActionTarget;
pub(crate) use crate::filter::action::with_values;
pub(crate) use crate::filter::expression::FilterInput;
pub(crate) use crate::filter::expression::Name;
pub(crate) use crate::filter::expression::PropertyScope;
#[cfg(feature = "daemon")]
pub(crate) use crate::filter::expression::all;
#[cfg(feature = "daemon")]
pub(crate) use crate::filter::expression::any;
#[cfg(feature = "daemon")]
pub(crate) use crate::filter::lexer::LexedNumber;
#[cfg(feature = "daemon")]
pub(crate) use crate::filter::lexer::Lexer;
#[cfg(feature = "daemon")]
pub(crate) use crate::filter::lexer::is_of_name;
#[cfg(feature = "daemon")]
pub(crate) use crate::filter::lexer::key;
pub(crate) use crate::filter::parser::SqlFilter;
#[cfg(feature = "daemon")]
pub(crate) use crate::filter::pattern::LikePattern;
#[cfg(any(test, feature = "daemon"))]
pub(crate) use crate::filter::value::FilterComparison;
pub(crate) use crate::filter::value::FilterValue;
#[cfg(feature = "daemon")]
pub(crate) use crate::filter::word_reader::PlacedWord;
#[cfg(feature = "daemon")]
pub(crate) use crate::filter::word_reader::SyntaxMistake;
#[cfg(feature = "daemon")]
pub(crate) use crate::filter::word_reader::WordReader;
#[cfg(feature = "daemon")]
pub(crate) use crate::filter::word_reader::WordSource;
