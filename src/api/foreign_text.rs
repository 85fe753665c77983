//! Foreign text made safe to look at: characters that hide or turn others around are shown as what they are.

use std::fmt::Write;

/// A text in which control characters, and those that change the direction of writing, are written out. Line ends and
/// tabs stay where `lines` says so.
pub fn visible(text: &str, lines: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' if lines => shown.push(character),
            _ if is_hidden(character) => {
                // Writing to a string cannot fail.
                let _ = write!(shown, "\u{27e8}U+{:04X}\u{27e9}", u32::from(character));
            }
            _ => shown.push(character),
        }
    }
    shown
}

/// Whether a character cannot be seen, or changes how others are seen.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_or_turns_text_around_is_written_out() {
        assert_eq!(visible("a\u{202e}b\0\n", true), "a\u{27e8}U+202E\u{27e9}b\u{27e8}U+0000\u{27e9}\n");
        assert_eq!(visible("\n", false), "\u{27e8}U+000A\u{27e9}");
        assert_eq!(visible("\u{5e9} <b>&\u{e9}", false), "\u{5e9} <b>&\u{e9}");
    }
}
