//! What the words of filters and of selectors have in common: both are conditions of SQL-92.

use std::iter::Peekable;
use std::str::CharIndices;

/// A text that is cut into words, one character ahead.
pub(crate) struct Lexer<'a> {
    text: &'a str,
    rest: Peekable<CharIndices<'a>>,
}

/// A number in a text. A whole number has no sign: with one before it, it may be one more than others.
pub(crate) enum LexedNumber {
    Integer(u64),
    Float(f64),
}

impl<'a> Lexer<'a> {
    pub(crate) fn of(text: &'a str) -> Lexer<'a> {
        Lexer { text, rest: text.char_indices().peekable() }
    }

    /// Passes over white space; the byte and the character at which the next word begins, none at the end.
    pub(crate) fn begin(&mut self) -> Option<(usize, char)> {
        while self.next_if(char::is_whitespace).is_some() {}
        self.rest.peek().copied()
    }

    /// The text from a byte on.
    pub(crate) fn from(&self, from: usize) -> &'a str {
        &self.text[from..]
    }

    /// Goes on by one character if it is of a kind.
    pub(crate) fn next_if(&mut self, is_of_kind: impl Fn(char) -> bool) -> Option<char> {
        self.rest.next_if(|(_, character)| is_of_kind(*character)).map(|(_, character)| character)
    }

    /// Goes on while characters are of a kind; the text from a byte on until there.
    pub(crate) fn while_of(&mut self, from: usize, is_of_kind: impl Fn(char) -> bool) -> &'a str {
        while self.next_if(&is_of_kind).is_some() {}
        &self.text[from..self.at()]
    }

    fn at(&mut self) -> usize {
        self.rest.peek().map_or(self.text.len(), |(at, _)| *at)
    }

    /// What stands between the next character and the end; that sign twice is itself once.
    ///
    /// # Errors
    /// A sentence: the end is missing.
    pub(crate) fn between(&mut self, end: char, what: &str) -> Result<String, String> {
        self.rest.next();
        let mut inside = String::new();
        while let Some((_, character)) = self.rest.next() {
            if character != end || self.next_if(|next| next == end).is_some() {
                inside.push(character);
            } else {
                return Ok(inside);
            }
        }
        Err(format!("{what} has no {end} at its end"))
    }

    /// The digits of a number, with a point and an exponent; whether there was neither.
    pub(crate) fn digits(&mut self, from: usize) -> (&'a str, bool) {
        let is_digit = |character: char| character.is_ascii_digit();
        self.while_of(from, is_digit);
        let mut is_whole = true;
        if self.next_if(|next| next == '.').is_some() {
            is_whole = false;
            self.while_of(from, is_digit);
        }
        if self.next_if(|next| matches!(next, 'e' | 'E')).is_some() {
            is_whole = false;
            self.next_if(|next| matches!(next, '+' | '-'));
            self.while_of(from, is_digit);
        }
        (&self.text[from..self.at()], is_whole)
    }

    /// The number that digits say, if nothing stands right behind it.
    ///
    /// # Errors
    /// A sentence: it is none that can be counted with.
    pub(crate) fn number(&mut self, digits: &str, is_whole: bool) -> Result<LexedNumber, String> {
        let is_alone = !self.rest.peek().is_some_and(|(_, next)| is_of_name(*next) || next.is_numeric());
        let float = || digits.parse().ok().filter(|number: &f64| number.is_finite()).map(LexedNumber::Float);
        let number = match (is_alone, is_whole) {
            (false, _) => None,
            (true, true) => digits.parse().ok().map(LexedNumber::Integer),
            (true, false) => float(),
        };
        number.ok_or_else(|| format!("{digits:?} is no number that can be counted with"))
    }

    /// The first of some signs that stands there; the longer ones come first.
    ///
    /// # Errors
    /// A sentence: none of them does, so what does is no part of `what`.
    pub(crate) fn sign(
        &mut self,
        from: usize,
        signs: &[&'static str],
        what: &str,
    ) -> Result<&'static str, String> {
        let rest = self.from(from);
        let sign = signs.iter().find(|sign| rest.starts_with(**sign)).ok_or_else(|| {
            let character = rest.chars().next().unwrap_or_default();
            format!("{character:?} is no part of {what}")
        })?;
        for _ in sign.chars() {
            self.rest.next();
        }
        Ok(sign)
    }
}

/// The word of the language that a name is, in whatever letters.
pub(crate) fn key(keys: &[&'static str], name: &str) -> Option<&'static str> {
    keys.iter().find(|key| key.eq_ignore_ascii_case(name)).copied()
}

/// Whether a name can begin with a character.
pub(crate) fn is_of_name(character: char) -> bool {
    character.is_alphabetic() || matches!(character, '_' | '$')
}
