//! Foreign text cut to the room that it has on a screen.

use crate::api::foreign_text::visible;

/// A text of one line with at most so many characters.
pub(crate) fn brief(text: &str, chars_max: usize) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let shown = visible(line, false);
    match shown.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}\u{2026}", &shown[..end]),
        None => shown,
    }
}

/// The beginning of a text that takes at most so many bytes inside HTML, and whether that is all of it.
pub(crate) fn cut(text: &str, bytes_max: usize) -> (&str, bool) {
    let mut bytes = 0;
    for (at, character) in text.char_indices() {
        bytes += match character {
            '&' => 5,
            '<' | '>' => 4,
            '"' => 6,
            _ => character.len_utf8(),
        };
        if bytes > bytes_max {
            return (&text[..at], false);
        }
    }
    (text, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_between_characters() {
        assert_eq!(brief("\n  \u{e9}\u{e9}\u{e9}\nmore", 2), "\u{e9}\u{e9}\u{2026}");
        assert_eq!(brief("short", 9), "short");
    }

    #[test]
    fn what_html_makes_longer_counts_as_long_as_it_gets() {
        assert_eq!(cut("<<<<", 8), ("<<", false));
        assert_eq!(cut("\u{e9}\u{e9}", 3), ("\u{e9}", false));
        assert_eq!(cut("abc", 3), ("abc", true));
    }
}
