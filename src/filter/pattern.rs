//! Patterns of LIKE: `_` is any character, `%` any characters or none.

use std::collections::BTreeMap;

use crate::limits;

/// A pattern: what stands before, between and behind its `%`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LikePattern {
    first: PatternPiece,
    middle: Vec<PatternPiece>,
    /// There is none without `%`.
    last: Option<PatternPiece>,
}

/// What stands together.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternPiece {
    Plain(String),
    Holed(HoledPiece),
}

/// A piece with `_`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HoledPiece {
    /// `_` is none.
    characters: Vec<Option<char>>,
    /// A bit for each place in the piece: whether any character fits there.
    any: Vec<u64>,
    /// The same for the characters of the piece itself.
    fitting: BTreeMap<char, Vec<u64>>,
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
        let (mut pieces, mut piece) = (Vec::new(), Vec::new());
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match character {
                _ if Some(character) == escape => match characters.next() {
                    Some(escaped) => piece.push(Some(escaped)),
                    None => return Err("the pattern of LIKE ends with its escape character".to_owned()),
                },
                '_' => piece.push(None),
                '%' => pieces.push(PatternPiece::of(std::mem::take(&mut piece))),
                _ => piece.push(Some(character)),
            }
        }
        let end = PatternPiece::of(piece);
        if pieces.is_empty() {
            return Ok(LikePattern { first: end, middle: pieces, last: None });
        }
        Ok(LikePattern { first: pieces.remove(0), middle: pieces, last: Some(end) })
    }

    /// Whether a whole text is like it. It takes about as long as the text is, whatever the pattern.
    pub(crate) fn fits(&self, text: &str) -> bool {
        let Some(rest) = self.first.strip_start(text) else { return false };
        let Some(last) = &self.last else { return rest.is_empty() };
        let Some(rest) = last.strip_end(rest) else { return false };
        // Whatever fits fits with each piece in its first place, too.
        self.middle.iter().try_fold(rest, |rest, piece| piece.behind_first(rest)).is_some()
    }
}

impl PatternPiece {
    fn of(characters: Vec<Option<char>>) -> PatternPiece {
        match characters.iter().copied().collect() {
            Some(plain) => PatternPiece::Plain(plain),
            None => PatternPiece::Holed(HoledPiece::of(characters)),
        }
    }

    /// What of a text that begins with it is behind it.
    fn strip_start<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            PatternPiece::Plain(plain) => text.strip_prefix(plain.as_str()),
            PatternPiece::Holed(piece) => {
                let mut rest = text.chars();
                let mut fits = |wanted: &Option<char>| is_fit(*wanted, rest.next());
                piece.characters.iter().all(&mut fits).then_some(rest.as_str())
            }
        }
    }

    /// What of a text that ends with it is before it.
    fn strip_end<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            PatternPiece::Plain(plain) => text.strip_suffix(plain.as_str()),
            PatternPiece::Holed(piece) => {
                let mut rest = text.chars();
                let mut fits = |wanted: &Option<char>| is_fit(*wanted, rest.next_back());
                piece.characters.iter().rev().all(&mut fits).then_some(rest.as_str())
            }
        }
    }

    /// What of a text is behind the first place where it stands.
    fn behind_first<'t>(&self, text: &'t str) -> Option<&'t str> {
        let end = match self {
            PatternPiece::Plain(plain) => text.find(plain.as_str())? + plain.len(),
            PatternPiece::Holed(piece) => piece.find_end(text)?,
        };
        text.get(end..)
    }
}

fn is_fit(wanted: Option<char>, found: Option<char>) -> bool {
    found.is_some() && (wanted.is_none() || wanted == found)
}

impl HoledPiece {
    fn of(characters: Vec<Option<char>>) -> HoledPiece {
        let mark = |places: &mut [u64], at: usize| places[at / 64] |= 1 << (at % 64);
        let mut any = vec![0; characters.len().div_ceil(64)];
        let is_any = |(_, wanted): &(usize, &Option<char>)| wanted.is_none();
        characters.iter().enumerate().filter(is_any).for_each(|(at, _)| mark(&mut any, at));
        let mut fitting = BTreeMap::new();
        for (at, character) in characters.iter().enumerate() {
            if let Some(character) = character {
                mark(fitting.entry(*character).or_insert_with(|| any.clone()), at);
            }
        }
        HoledPiece { characters, any, fitting }
    }

    /// Where its first place in a text ends. Each character of the text is looked at once: a bit says for each beginning of
    /// the piece whether what was read so far ends with it.
    fn find_end(&self, text: &str) -> Option<usize> {
        let (word, bit) = ((self.characters.len() - 1) / 64, (self.characters.len() - 1) % 64);
        let mut begun = vec![0; self.any.len()];
        for (at, character) in text.char_indices() {
            let mut carried = 1;
            for (places, fitting) in begun.iter_mut().zip(self.fitting.get(&character).unwrap_or(&self.any)) {
                let before: u64 = *places;
                *places = (before << 1 | carried) & fitting;
                carried = before >> 63;
            }
            if begun[word] >> bit & 1 == 1 {
                return Some(at + character.len_utf8());
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        let run = "a".repeat(limits::SELECTOR_PATTERN_CHARS_MAX - 4);
        for pattern in [format!("%{run}b"), format!("%{run}b%"), format!("%_{run}b%"), format!("%{run}_b%")] {
            let pattern = LikePattern::read(&pattern, None).unwrap();
            // Some hundred times the text is nothing; times the length of the pattern as well it is minutes.
            assert!((0..100).all(|_| !pattern.fits(&text)));
            assert!(pattern.fits(&format!("{text}_b")) || pattern.fits(&format!("{text}b")));
        }
    }

    /// What a pattern means, told by trying one place after the other.
    fn fits_by_trying(pattern: &[char], text: &[char]) -> bool {
        let (mut at, mut next) = (0, 0);
        let mut again: Option<(usize, usize)> = None;
        loop {
            match (pattern.get(at), text.get(next)) {
                (Some('%'), _) => {
                    at += 1;
                    again = Some((at, next));
                }
                (Some(wanted), Some(found)) if *wanted == '_' || wanted == found => {
                    (at, next) = (at + 1, next + 1);
                }
                (None, None) => return true,
                (_, None) => return false,
                (_, Some(_)) => match &mut again {
                    None => return false,
                    Some((from, left)) => {
                        *left += 1;
                        (at, next) = (*from, *left);
                    }
                },
            }
        }
    }

    fn is_like_by_trying(pattern: &str, text: &str) -> bool {
        fits_by_trying(&pattern.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn a_pattern_fits_what_trying_every_place_says(
            pattern in "[ab\u{e9}_%]{0,10}",
            text in "[ab\u{e9}]{0,14}",
            (long, long_text) in ("%?[aab_]{60,140}%?", "[aaaaaaab]{60,300}"),
        ) {
            for (pattern, text) in [(pattern, text), (long, long_text)] {
                prop_assert_eq!(fits(&pattern, &text), is_like_by_trying(&pattern, &text));
            }
        }

        #[test]
        fn a_long_piece_is_found_where_it_stands(
            (before, stands, behind) in ("[ab]{0,80}", "[ab]{1,200}", "[ab]{0,80}"),
            holes in prop::collection::vec(any::<bool>(), 200),
            (is_open_before, is_open_behind) in any::<(bool, bool)>(),
        ) {
            let holed = |(character, is_hole): (char, &bool)| if *is_hole { '_' } else { character };
            let piece: String = stands.chars().zip(&holes).map(holed).collect();
            let open = |is_open| if is_open { "%" } else { "" };
            let pattern = format!("{}{piece}{}", open(is_open_before), open(is_open_behind));
            let text = format!("{before}{stands}{behind}");
            prop_assert_eq!(fits(&pattern, &text), is_like_by_trying(&pattern, &text));
            let anywhere = format!("%{piece}%");
            prop_assert!(fits(&anywhere, &text));
        }
    }
}
