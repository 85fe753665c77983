//! Patterns of LIKE: `_` is any character, `%` any characters or none.

use std::str::Chars;

use crate::limits;

/// A pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LikePattern(Vec<PatternPiece>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatternPiece {
    Character(char),
    AnyCharacter,
    Anything,
}

impl LikePattern {
    /// Reads a pattern; after `escape` a character means itself.
    ///
    /// # Errors
    /// A sentence: it is too long, or ends with the escape.
    pub(crate) fn read(text: &str, escape: Option<char>) -> Result<LikePattern, String> {
        let max = limits::SELECTOR_PATTERN_CHARS_MAX;
        if text.chars().count() > max {
            return Err(format!("a pattern of LIKE has at most {max} characters"));
        }
        let mut pieces = Vec::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            pieces.push(match character {
                _ if Some(character) == escape => match characters.next() {
                    Some(escaped) => PatternPiece::Character(escaped),
                    None => return Err("the pattern of LIKE ends with its escape character".to_owned()),
                },
                '_' => PatternPiece::AnyCharacter,
                '%' => PatternPiece::Anything,
                _ => PatternPiece::Character(character),
            });
        }
        Ok(LikePattern(pieces))
    }

    /// Whether a whole text is like it. It takes no longer than the text's length times the pattern's.
    pub(crate) fn fits(&self, text: &str) -> bool {
        let mut at = 0;
        let mut rest = text.chars();
        // Where to go on when what follows the last `%` does not fit: that takes one character more.
        let mut again: Option<(usize, Chars<'_>)> = None;
        loop {
            let before = rest.clone();
            match (self.0.get(at), rest.next()) {
                (Some(PatternPiece::Anything), _) => {
                    rest = before;
                    at += 1;
                    again = Some((at, rest.clone()));
                }
                (Some(PatternPiece::AnyCharacter), Some(_)) => at += 1,
                (Some(PatternPiece::Character(wanted)), Some(found)) if *wanted == found => at += 1,
                (None, None) => return true,
                // The pattern wants more than there is, whatever `%` takes.
                (_, None) => return false,
                (_, Some(_)) => match &mut again {
                    None => return false,
                    Some((from, left)) => {
                        left.next();
                        (at, rest) = (*from, left.clone());
                    }
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, text: &str) -> bool {
        LikePattern::read(pattern, Some('\\')).unwrap().fits(text)
    }

    #[test]
    fn a_pattern_is_for_a_whole_text() {
        for (pattern, text) in [
            ("", ""),
            ("%", ""),
            ("%", "anything"),
            ("12%3", "123"),
            ("12%3", "12993"),
            ("l_se", "lose"),
            ("_", "\u{1f600}"),
            ("%b%", "abc"),
            ("a%%_", "abcd"),
            ("%ab", "aab"),
            ("%a_c%d", "xaacabcaxcd"),
            (r"\_%", "_foo"),
            (r"\%\\", r"%\"),
        ] {
            assert!(fits(pattern, text), "{pattern:?} {text:?}");
        }
        for (pattern, text) in [
            ("", "a"),
            ("12%3", "1234"),
            ("l_se", "loose"),
            ("l_se", "lse"),
            (r"\_%", "bar"),
            ("a%", "ba"),
            ("%_", ""),
            ("A", "a"),
        ] {
            assert!(!fits(pattern, text), "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn an_escape_at_the_end_and_a_long_pattern_are_refused() {
        assert!(LikePattern::read(r"a\", Some('\\')).is_err());
        assert!(LikePattern::read(&"x".repeat(limits::SELECTOR_PATTERN_CHARS_MAX + 1), None).is_err());
    }

    #[test]
    fn the_longest_patterns_and_texts_are_judged_soon() {
        let text = "a".repeat(64 * 1_024);
        let pattern = format!("{}b", "%a_".repeat(limits::SELECTOR_PATTERN_CHARS_MAX / 4));
        assert!(!fits(&pattern, &text));
        assert!(fits(&pattern, &format!("{text}b")));
    }
}
