//! A place in a text of SQL, with one word read ahead.

use std::fmt;

/// Why a text is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxMistake {
    problem: String,
    /// The character before which it was noticed, from 1 on.
    at: usize,
}

impl fmt::Display for SyntaxMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, at character {}", self.problem, self.at)
    }
}

/// A word, and the byte at which it begins.
pub(crate) type PlacedWord<W> = (W, usize);

/// The words of a text, one after the other.
pub(crate) trait WordSource {
    type Word;

    /// What the text is, in a sentence about it.
    const WHAT: &'static str;

    /// The most bytes it may have.
    const BYTES_MAX: usize;

    /// How deep it may be nested.
    const DEPTH_MAX: usize;

    /// The next word; none at the end.
    ///
    /// # Errors
    /// A sentence: there is something that is no word.
    fn next(&mut self) -> Result<Option<PlacedWord<Self::Word>>, (String, usize)>;

    /// The word of the language that it is, in capital letters.
    fn key(word: &Self::Word) -> Option<&'static str>;

    /// The sign that it is.
    fn sign(word: &Self::Word) -> Option<&'static str>;
}

/// A place in a text, with one word read ahead.
pub(crate) struct WordReader<'a, W: WordSource> {
    pub(crate) words: W,
    text: &'a str,
    pub(crate) next: Option<W::Word>,
    /// The byte at which that word begins.
    pub(crate) at: usize,
    depth: usize,
}

impl<'a, W: WordSource> WordReader<'a, W> {
    /// At the beginning of a text.
    ///
    /// # Errors
    /// It is longer than it may be, or begins with what is no word.
    pub(crate) fn of(text: &'a str, words: W) -> Result<WordReader<'a, W>, SyntaxMistake> {
        let (bytes, max) = (text.len(), W::BYTES_MAX);
        if bytes > max {
            let problem = format!("{} has {bytes} bytes, at most {max} are allowed", W::WHAT);
            return Err(SyntaxMistake { problem, at: 1 });
        }
        let mut reader = WordReader { words, text, next: None, at: 0, depth: 0 };
        reader.advance()?;
        Ok(reader)
    }

    pub(crate) fn mistake(&self, problem: impl Into<String>) -> SyntaxMistake {
        SyntaxMistake { problem: problem.into(), at: self.text[..self.at].chars().count() + 1 }
    }

    pub(crate) fn check(&self, is_right: bool, problem: &str) -> Result<(), SyntaxMistake> {
        if is_right { Ok(()) } else { Err(self.mistake(problem)) }
    }

    pub(crate) fn advance(&mut self) -> Result<Option<W::Word>, SyntaxMistake> {
        match self.words.next() {
            Ok(word) => {
                let (next, at) = word.map_or((None, self.text.len()), |(word, at)| (Some(word), at));
                self.at = at;
                Ok(std::mem::replace(&mut self.next, next))
            }
            Err((problem, at)) => {
                self.at = at;
                Err(self.mistake(problem))
            }
        }
    }

    pub(crate) fn is_key(&self, key: &str) -> bool {
        self.next.as_ref().and_then(W::key) == Some(key)
    }

    /// The next word in its own letters, if it is one of the language.
    pub(crate) fn key_as_written(&self) -> Option<&'a str> {
        let key = self.next.as_ref().and_then(W::key)?;
        Some(&self.text[self.at..self.at + key.len()])
    }

    /// Goes on if the next is a word of the language.
    pub(crate) fn took_key(&mut self, key: &str) -> Result<bool, SyntaxMistake> {
        let took = self.is_key(key);
        if took {
            self.advance()?;
        }
        Ok(took)
    }

    /// Goes on if the next is a sign.
    pub(crate) fn took_sign(&mut self, sign: &str) -> Result<bool, SyntaxMistake> {
        let took = self.next.as_ref().and_then(W::sign) == Some(sign);
        if took {
            self.advance()?;
        }
        Ok(took)
    }

    /// Goes on by whichever sign of some is next.
    pub(crate) fn took_one<T: Copy>(&mut self, signs: &[(&str, T)]) -> Result<Option<T>, SyntaxMistake> {
        for (sign, meaning) in signs {
            if self.took_sign(sign)? {
                return Ok(Some(*meaning));
            }
        }
        Ok(None)
    }

    pub(crate) fn expect_sign(&mut self, sign: &str) -> Result<(), SyntaxMistake> {
        match self.took_sign(sign)? {
            true => Ok(()),
            false => Err(self.mistake(format!("{sign:?} is missing"))),
        }
    }

    /// Reads something that is inside of something else.
    pub(crate) fn inside<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, SyntaxMistake>,
    ) -> Result<T, SyntaxMistake> {
        let max = W::DEPTH_MAX;
        if self.depth == max {
            return Err(self.mistake(format!("{} is nested more than {max} times", W::WHAT)));
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }
}
