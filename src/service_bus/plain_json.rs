//! JSON as .NET reads it in files for people: with comments, and commas after the last of a list.

/// The same without them: what is left out is blank, so that every place in it is still where it was.
pub(crate) fn plain_json(text: &[u8]) -> Vec<u8> {
    let mut plain = text.to_vec();
    if plain.starts_with(b"\xef\xbb\xbf") {
        blank(&mut plain, 0, 3);
    }
    let (mut at, mut comma) = (0, None);
    while at < plain.len() {
        let end = match (plain[at], plain.get(at + 1)) {
            (b'"', _) => end_of_text(&plain, at),
            (b'/', Some(b'/')) => end_of(&plain, at, b"\n"),
            (b'/', Some(b'*')) => end_of(&plain, at + 2, b"*/"),
            _ => at + 1,
        };
        match plain[at] {
            b'/' if end > at + 1 => blank(&mut plain, at, end),
            b',' => comma = Some(at),
            b'}' | b']' => comma.take().into_iter().for_each(|at| plain[at] = b' '),
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at = end;
    }
    plain
}

/// Where a text in quotation marks ends.
fn end_of_text(text: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while at < text.len() {
        match text[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// Where what begins here ends: behind these bytes, or with the text.
fn end_of(text: &[u8], from: usize, end: &[u8]) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    let found = rest.windows(end.len()).position(|window| window == end);
    found.map_or(text.len(), |at| from + at + end.len())
}

/// Lines stay lines.
fn blank(text: &mut [u8], from: usize, to: usize) {
    text[from..to].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        let plain = plain_json(text.as_bytes());
        assert_eq!(plain.len(), text.len(), "{text:?}");
        String::from_utf8(plain).unwrap()
    }

    #[test]
    fn comments_and_commas_after_the_last_are_blank_and_nothing_else_is() {
        for (text, left) in [
            ("[1, 2, ]", "[1, 2  ]"),
            ("{\"a\": 1 // one\n}", "{\"a\": 1       \n}"),
            ("[1, // one\n /* two */ ]", "[1        \n           ]"),
            ("[\"//\", \"/*\", \"\\\"//\", \",]\"]", "[\"//\", \"/*\", \"\\\"//\", \",]\"]"),
            ("[1 /* a\n b */, 2]", "[1     \n     , 2]"),
            ("[1, /* 2 */ 3]", "[1,         3]"),
            ("\u{feff}{}", "   {}"),
            ("[1, 2", "[1, 2"),
            ("1 / 2", "1 / 2"),
        ] {
            assert_eq!(plain(text), left);
        }
        for unfinished in ["\"a\\", "/* a", "/*", "//", "/", "\"", ",,]", "/*/"] {
            plain(unfinished);
        }
    }

    #[test]
    fn json_stays_what_it_is() {
        let text = "{\"a/b\": [1.5e3, \"x, ]\", null, {\"c\": \"\\\\\"}], \"d\": \"/* e */\"}";
        assert_eq!(plain(text), text);
    }
}
