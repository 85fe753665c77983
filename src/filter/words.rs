//! The words of a filter, one after the other.

use std::iter::Peekable;
use std::str::CharIndices;

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
    text: &'a str,
    rest: Peekable<CharIndices<'a>>,
}

impl<'a> FilterWords<'a> {
    pub(crate) fn of(text: &'a str) -> FilterWords<'a> {
        FilterWords { text, rest: text.char_indices().peekable() }
    }

    /// The next word, and the byte at which it begins; none at the end.
    ///
    /// # Errors
    /// A sentence: there is something that is no word.
    pub(crate) fn next(&mut self) -> Result<Option<(FilterWord, usize)>, (String, usize)> {
        while self.rest.next_if(|(_, character)| character.is_whitespace()).is_some() {}
        let Some(&(from, first)) = self.rest.peek() else { return Ok(None) };
        let rest = &self.text[from..];
        let word = match first {
            '\'' => self.between('\'', "a text").map(FilterWord::Text),
            '"' => self.between('"', "a name").map(FilterWord::Quoted),
            '[' => self.between(']', "a name").map(FilterWord::Quoted),
            '0' if rest.starts_with("0x") || rest.starts_with("0X") => self.binary(from),
            '0'..='9' => self.number(from),
            '.' if rest[1..].starts_with(|next: char| next.is_ascii_digit()) => self.number(from),
            '@' => self.parameter(from),
            _ if is_of_name(first) => Ok(self.name(from)),
            _ => self.sign(from),
        };
        word.map(|word| Some((word, from))).map_err(|problem| (problem, from))
    }

    fn name(&mut self, from: usize) -> FilterWord {
        let name = self.while_of(from, |character| is_of_name(character) || character.is_numeric());
        let key = KEYS.into_iter().find(|key| key.eq_ignore_ascii_case(name));
        key.map_or_else(|| FilterWord::Name(name.to_owned()), FilterWord::Key)
    }

    fn parameter(&mut self, from: usize) -> Result<FilterWord, String> {
        self.rest.next();
        let name = self.while_of(from, |character| is_of_name(character) || character.is_numeric());
        match name.len() {
            1 => Err("the name of a parameter is missing after \"@\"".to_owned()),
            _ => Ok(FilterWord::Parameter(name.to_owned())),
        }
    }

    /// What stands before the end; that sign twice is itself once.
    fn between(&mut self, end: char, what: &str) -> Result<String, String> {
        self.rest.next();
        let mut inside = String::new();
        while let Some((_, character)) = self.rest.next() {
            if character != end {
                inside.push(character);
            } else if self.rest.next_if(|(_, next)| *next == end).is_some() {
                inside.push(end);
            } else {
                return Ok(inside);
            }
        }
        Err(format!("{what} has no {end} at its end"))
    }

    fn binary(&mut self, from: usize) -> Result<FilterWord, String> {
        let written = self.while_of(from, |character| character.is_alphanumeric());
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
        self.while_of(from, |character| character.is_ascii_digit());
        let mut is_whole = true;
        if self.rest.next_if(|(_, next)| *next == '.').is_some() {
            is_whole = false;
            self.while_of(from, |character| character.is_ascii_digit());
        }
        if self.rest.next_if(|(_, next)| matches!(next, 'e' | 'E')).is_some() {
            is_whole = false;
            self.rest.next_if(|(_, next)| matches!(next, '+' | '-'));
            self.while_of(from, |character| character.is_ascii_digit());
        }
        let digits = &self.text[from..self.at()];
        let wrong = || format!("{digits:?} is no number that can be counted with");
        if self.rest.peek().is_some_and(|(_, next)| is_of_name(*next) || next.is_numeric()) {
            return Err(wrong());
        }
        match is_whole {
            true => digits.parse().map(FilterWord::Integer).map_err(|_| wrong()),
            false => digits
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite())
                .map(FilterWord::Float)
                .ok_or_else(wrong),
        }
    }

    fn sign(&mut self, from: usize) -> Result<FilterWord, String> {
        let rest = &self.text[from..];
        let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
        let sign = sign.ok_or_else(|| match rest.chars().next() {
            Some(character) => format!("{character:?} is no part of a filter"),
            None => "there is nothing".to_owned(),
        })?;
        for _ in sign.chars() {
            self.rest.next();
        }
        Ok(FilterWord::Sign(sign))
    }

    /// Goes on while characters are of a kind; the text from a byte on until there.
    fn while_of(&mut self, from: usize, is_of_kind: impl Fn(char) -> bool) -> &'a str {
        while self.rest.next_if(|(_, character)| is_of_kind(*character)).is_some() {}
        &self.text[from..self.at()]
    }

    fn at(&mut self) -> usize {
        self.rest.peek().map_or(self.text.len(), |(at, _)| *at)
    }
}

fn is_of_name(character: char) -> bool {
    character.is_alphabetic() || matches!(character, '_' | '$')
}
