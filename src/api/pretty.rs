//! JSON set out over lines, with every number and text left as it was written.

/// Indents beyond which nested JSON goes no further to the right.
const INDENTS: usize = 40;

/// Sets a JSON text out over lines. Unlike a parser it keeps numbers of any length and the order of fields.
pub fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut is_text, mut is_escaped, mut opened) = (0_usize, false, false, false);
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth.min(INDENTS)));
    };
    for character in json.chars() {
        if is_text {
            out.push(character);
            (is_text, is_escaped) = (character != '"' || is_escaped, character == '\\' && !is_escaped);
            continue;
        }
        if character.is_ascii_whitespace() {
            continue;
        }
        let closes = matches!(character, '}' | ']');
        depth = depth.saturating_sub(usize::from(closes));
        if opened != closes {
            line(&mut out, depth);
        }
        opened = false;
        match character {
            '{' | '[' => {
                out.push(character);
                (depth, opened) = (depth + 1, true);
                continue;
            }
            ',' => {
                out.push(character);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            '"' => {
                out.push(character);
                is_text = true;
            }
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_stay_as_they_were_written() {
        let json = r#"{"id":18446744073709551616,"a":[1.10, {}],"b":"x\"{,:","c":[ ]}"#;
        let expected = "{\n  \"id\": 18446744073709551616,\n  \"a\": [\n    1.10,\n    {}\n  ],\n  \
                        \"b\": \"x\\\"{,:\",\n  \"c\": []\n}";
        assert_eq!(pretty(json), expected);
        let same = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(same(&pretty(json)), same(json));
    }
}
