//! The words of a selector, one after the other.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::CharIndices;

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
    Text(Cow<'a, str>),
    /// A whole number; with a sign before it, one more than others have.
    Integer(u64),
    Float(f64),
}

const KEYS: [&str; 11] =
    ["AND", "BETWEEN", "ESCAPE", "FALSE", "IN", "IS", "LIKE", "NOT", "NULL", "OR", "TRUE"];

const SIGNS: [&str; 13] = ["<>", "<=", ">=", "=", "<", ">", "(", ")", ",", "+", "-", "*", "/"];

/// The words of a text, each with where it begins.
pub(crate) struct SelectorWords<'a> {
    text: &'a str,
    rest: Peekable<CharIndices<'a>>,
}

impl<'a> SelectorWords<'a> {
    pub(crate) fn of(text: &'a str) -> SelectorWords<'a> {
        SelectorWords { text, rest: text.char_indices().peekable() }
    }

    /// The next word, and the byte at which it begins; none at the end.
    ///
    /// # Errors
    /// A sentence: there is something that is no word.
    pub(crate) fn next(&mut self) -> Result<Option<(SelectorWord<'a>, usize)>, (String, usize)> {
        while self.rest.next_if(|(_, character)| character.is_whitespace()).is_some() {}
        let Some(&(from, first)) = self.rest.peek() else { return Ok(None) };
        let word = match first {
            '\'' => self.quoted(from),
            '0'..='9' => self.number(from),
            '.' if self.text[from + 1..].starts_with(|next: char| next.is_ascii_digit()) => self.number(from),
            _ if is_of_name(first) => Ok(self.name(from)),
            _ => self.sign(from),
        };
        word.map(|word| Some((word, from))).map_err(|problem| (problem, from))
    }

    fn name(&mut self, from: usize) -> SelectorWord<'a> {
        let name =
            self.while_of(from, |character| is_of_name(character) || matches!(character, '0'..='9' | '.'));
        let key = KEYS.into_iter().find(|key| key.eq_ignore_ascii_case(name));
        key.map_or(SelectorWord::Name(name), SelectorWord::Key)
    }

    /// Two quotes in a text are one.
    fn quoted(&mut self, from: usize) -> Result<SelectorWord<'a>, String> {
        self.rest.next();
        let mut end = None;
        let mut is_doubled = false;
        while let Some((at, character)) = self.rest.next() {
            match character {
                '\'' if self.rest.next_if(|(_, next)| *next == '\'').is_some() => is_doubled = true,
                '\'' => {
                    end = Some(at);
                    break;
                }
                _ => {}
            }
        }
        let end = end.ok_or("a text has no quote at its end")?;
        let inside = &self.text[from + 1..end];
        Ok(SelectorWord::Text(match is_doubled {
            true => Cow::Owned(inside.replace("''", "'")),
            false => Cow::Borrowed(inside),
        }))
    }

    fn number(&mut self, from: usize) -> Result<SelectorWord<'a>, String> {
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
        // What follows a number in Java says how it is stored.
        let kind = self.rest.next_if(|(_, next)| matches!(next, 'l' | 'L' | 'f' | 'F' | 'd' | 'D'));
        is_whole &= !kind.is_some_and(|(_, kind)| matches!(kind, 'f' | 'F' | 'd' | 'D'));
        let is_long = kind.is_some_and(|(_, kind)| matches!(kind, 'l' | 'L'));
        let wrong = || format!("{digits:?} is no number that can be counted with");
        if self.rest.peek().is_some_and(|(_, next)| is_of_name(*next) || next.is_ascii_digit())
            || (is_long && !is_whole)
        {
            return Err(wrong());
        }
        match is_whole {
            true => digits.parse().map(SelectorWord::Integer).map_err(|_| wrong()),
            false => digits
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite())
                .map(SelectorWord::Float)
                .ok_or_else(wrong),
        }
    }

    fn sign(&mut self, from: usize) -> Result<SelectorWord<'a>, String> {
        let rest = &self.text[from..];
        let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
        let sign = sign.ok_or_else(|| match rest.chars().next() {
            Some(character) => format!("{character:?} is no part of a selector"),
            None => "there is nothing".to_owned(),
        })?;
        for _ in sign.chars() {
            self.rest.next();
        }
        Ok(SelectorWord::Sign(sign))
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
