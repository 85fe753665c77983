//! One line of a script: a verb, plain words, and words of the form `name=value`.

use std::time::Duration;

/// One line of a script, with where it stands.
pub(crate) struct Line<'a> {
    place: &'a str,
    pub(crate) verb: &'a str,
    words: Vec<&'a str>,
}

impl<'a> Line<'a> {
    pub(crate) fn new(place: &'a str, line: &'a str) -> Line<'a> {
        let mut words = line.split_whitespace();
        let verb = words.next().expect("empty lines are not played");
        Line { place, verb, words: words.collect() }
    }

    /// The n-th plain word.
    pub(crate) fn word(&self, index: usize) -> &'a str {
        self.optional(index).unwrap_or_else(|| panic!("{}: word {index} is missing", self.place))
    }

    pub(crate) fn optional(&self, index: usize) -> Option<&'a str> {
        self.words.iter().filter(|word| !word.contains('=')).nth(index).copied()
    }

    /// The value of `name=value`.
    pub(crate) fn value(&self, name: &str) -> Option<&'a str> {
        self.words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    pub(crate) fn number(&self, index: usize) -> u64 {
        self.parse(self.word(index))
    }

    pub(crate) fn parse<T: std::str::FromStr>(&self, text: &str) -> T {
        text.parse().unwrap_or_else(|_| panic!("{}: {text} is not a number", self.place))
    }

    pub(crate) fn seconds(&self, name: &str) -> Option<Duration> {
        self.value(name).map(|text| Duration::from_secs(self.parse(text)))
    }

    pub(crate) fn unknown(&self) -> ! {
        panic!("{}: there is no verb {}", self.place, self.verb)
    }
}
