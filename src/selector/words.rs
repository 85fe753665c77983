//! The words of a selector, one after the other.

use crate::filter::LexedNumber;
use crate::filter::Lexer;
use crate::filter::PlacedWord;
use crate::filter::WordSource;
use crate::filter::is_of_name;
use crate::filter::key;
use crate::limits;

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SelectorWord<'a> {
    /// The name of a property.
    Name(&'a str),
    /// A word of the language, in capital letters.
    Key(&'static str),
    /// A sign or two.
    Sign(&'static str),
    /// A text between quotes.
    Text(String),
    /// A whole number; with a sign before it, one more than others have.
    Integer(u64),
    Float(f64),
}

const KEYS: [&str; 11] =
    ["AND", "BETWEEN", "ESCAPE", "FALSE", "IN", "IS", "LIKE", "NOT", "NULL", "OR", "TRUE"];

const SIGNS: [&str; 13] = ["<>", "<=", ">=", "=", "<", ">", "(", ")", ",", "+", "-", "*", "/"];

/// The words of a text, each with where it begins.
pub(crate) struct SelectorWords<'a>(Lexer<'a>);

impl<'a> SelectorWords<'a> {
    pub(crate) fn of(text: &'a str) -> SelectorWords<'a> {
        SelectorWords(Lexer::of(text))
    }
}

impl<'a> WordSource for SelectorWords<'a> {
    type Word = SelectorWord<'a>;

    const WHAT: &'static str = "the selector";

    const BYTES_MAX: usize = limits::SELECTOR_BYTES_MAX;

    const DEPTH_MAX: usize = limits::SELECTOR_DEPTH_MAX;

    fn key(word: &SelectorWord<'a>) -> Option<&'static str> {
        match word {
            SelectorWord::Key(key) => Some(key),
            _ => None,
        }
    }

    fn sign(word: &SelectorWord<'a>) -> Option<&'static str> {
        match word {
            SelectorWord::Sign(sign) => Some(sign),
            _ => None,
        }
    }

    fn next(&mut self) -> Result<Option<PlacedWord<SelectorWord<'a>>>, (String, usize)> {
        let Some((from, first)) = self.0.begin() else { return Ok(None) };
        let word = match first {
            '\'' => self.0.between('\'', "a text").map(SelectorWord::Text),
            '0'..='9' => self.number(from),
            '.' if self.0.from(from + 1).starts_with(|next: char| next.is_ascii_digit()) => self.number(from),
            _ if is_of_name(first) => Ok(self.name(from)),
            _ => self.0.sign(from, &SIGNS, "a selector").map(SelectorWord::Sign),
        };
        word.map(|word| Some((word, from))).map_err(|problem| (problem, from))
    }
}

impl<'a> SelectorWords<'a> {
    fn name(&mut self, from: usize) -> SelectorWord<'a> {
        let is_of_rest = |character| is_of_name(character) || matches!(character, '0'..='9' | '.');
        let name = self.0.while_of(from, is_of_rest);
        key(&KEYS, name).map_or(SelectorWord::Name(name), SelectorWord::Key)
    }

    fn number(&mut self, from: usize) -> Result<SelectorWord<'a>, String> {
        let (digits, is_whole) = self.0.digits(from);
        // What follows a number in Java says how it is stored.
        let kind = match is_whole {
            true => self.0.next_if(|next| matches!(next, 'l' | 'L' | 'f' | 'F' | 'd' | 'D')),
            false => self.0.next_if(|next| matches!(next, 'f' | 'F' | 'd' | 'D')),
        };
        let is_whole = is_whole && matches!(kind, None | Some('l' | 'L'));
        Ok(match self.0.number(digits, is_whole)? {
            LexedNumber::Integer(number) => SelectorWord::Integer(number),
            LexedNumber::Float(number) => SelectorWord::Float(number),
        })
    }
}
