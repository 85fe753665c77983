//! The words of a filter, one after the other.

use crate::filter::lexer::LexedNumber;
use crate::filter::lexer::Lexer;
use crate::filter::lexer::is_of_name;
use crate::filter::lexer::key;
use crate::filter::word_reader::PlacedWord;
use crate::filter::word_reader::WordSource;
use crate::header::Properties;
use crate::limits;

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FilterWord {
    /// A name, or a part of one.
    Name(String),
    /// A name between brackets or double quotes: never a word of the language.
    Quoted(String),
    /// A word of the language, in capital letters.
    Key(&'static str),
    /// A sign or two.
    Sign(&'static str),
    /// A text between quotes.
    Text(String),
    /// A whole number; with a sign before it, one more than others have.
    Integer(u64),
    Float(f64),
    Binary(Vec<u8>),
    /// What is given beside the text, after an `@`.
    Parameter(String),
}

const KEYS: [&str; 13] =
    ["AND", "ESCAPE", "EXISTS", "FALSE", "IN", "IS", "LIKE", "NOT", "NULL", "OR", "REMOVE", "SET", "TRUE"];

const SIGNS: [&str; 17] =
    ["<>", "!=", "<=", ">=", "=", "<", ">", "(", ")", ",", "+", "-", "*", "/", "%", ";", "."];

/// The words of a text, each with where it begins.
pub(crate) struct FilterWords<'a> {
    lexer: Lexer<'a>,
    /// What is given beside the text.
    pub(crate) parameters: &'a Properties,
}

impl<'a> FilterWords<'a> {
    pub(crate) fn of(text: &'a str, parameters: &'a Properties) -> FilterWords<'a> {
        FilterWords { lexer: Lexer::of(text), parameters }
    }
}

impl WordSource for FilterWords<'_> {
    type Word = FilterWord;

    const WHAT: &'static str = "it";

    const BYTES_MAX: usize = limits::FILTER_BYTES_MAX;

    const DEPTH_MAX: usize = limits::FILTER_DEPTH_MAX;

    fn key(word: &FilterWord) -> Option<&'static str> {
        match word {
            FilterWord::Key(key) => Some(key),
            _ => None,
        }
    }

    fn sign(word: &FilterWord) -> Option<&'static str> {
        match word {
            FilterWord::Sign(sign) => Some(sign),
            _ => None,
        }
    }

    fn next(&mut self) -> Result<Option<PlacedWord<FilterWord>>, (String, usize)> {
        let Some((from, first)) = self.lexer.begin() else { return Ok(None) };
        let rest = self.lexer.from(from);
        let word = match first {
            '\'' => self.lexer.between('\'', "a text").map(FilterWord::Text),
            '"' => self.lexer.between('"', "a name").map(FilterWord::Quoted),
            '[' => self.lexer.between(']', "a name").map(FilterWord::Quoted),
            '0' if rest.starts_with("0x") || rest.starts_with("0X") => self.binary(from),
            '0'..='9' => self.number(from),
            '.' if rest[1..].starts_with(|next: char| next.is_ascii_digit()) => self.number(from),
            '@' => self.parameter(from),
            _ if is_of_name(first) => Ok(self.name(from)),
            _ => self.lexer.sign(from, &SIGNS, "a filter").map(FilterWord::Sign),
        };
        word.map(|word| Some((word, from))).map_err(|problem| (problem, from))
    }
}

impl FilterWords<'_> {
    fn name(&mut self, from: usize) -> FilterWord {
        let name = self.lexer.while_of(from, |character| is_of_name(character) || character.is_numeric());
        key(&KEYS, name).map_or_else(|| FilterWord::Name(name.to_owned()), FilterWord::Key)
    }

    fn parameter(&mut self, from: usize) -> Result<FilterWord, String> {
        self.lexer.next_if(|character| character == '@');
        let name = self.lexer.while_of(from, |character| is_of_name(character) || character.is_numeric());
        match name.len() {
            1 => Err("the name of a parameter is missing after \"@\"".to_owned()),
            _ => Ok(FilterWord::Parameter(name.to_owned())),
        }
    }

    fn binary(&mut self, from: usize) -> Result<FilterWord, String> {
        let written = self.lexer.while_of(from, |character| character.is_alphanumeric());
        let digits = &written.as_bytes()[2..];
        let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let byte = |pair: &[u8]| Some(digit(pair[0])? * 16 + digit(pair[1])?);
        let bytes: Option<Vec<u8>> = match digits.len() % 2 {
            0 => digits.chunks_exact(2).map(byte).collect(),
            _ => None,
        };
        bytes
            .map(FilterWord::Binary)
            .ok_or_else(|| format!("{written:?} is not made of pairs of hexadecimal digits"))
    }

    fn number(&mut self, from: usize) -> Result<FilterWord, String> {
        let (digits, is_whole) = self.lexer.digits(from);
        Ok(match self.lexer.number(digits, is_whole)? {
            LexedNumber::Integer(number) => FilterWord::Integer(number),
            LexedNumber::Float(number) => FilterWord::Float(number),
        })
    }
}
