//! JSON set out over lines, with every number and text left as it was written.

/// Sets a JSON text out over lines. Unlike a parser it keeps numbers of any length and the order of fields.
pub(crate) fn pretty(json: &str) -> String {
    let mut pretty = Pretty { text: String::with_capacity(json.len() * 2), depth: 0 };
    let mut dead_letters = json.chars().peekable();
    while let Some(dead_letter) = dead_letters.next() {
        match dead_letter {
            '"' => {
                pretty.text.push('"');
                let mut is_escaped = false;
                for dead_letter in dead_letters.by_ref() {
                    pretty.text.push(dead_letter);
                    match dead_letter {
                        _ if is_escaped => is_escaped = false,
                        '\\' => is_escaped = true,
                        '"' => break,
                        _ => {}
                    }
                }
            }
            '{' | '[' => {
                pretty.text.push(dead_letter);
                while dead_letters.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                match dead_letters.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => pretty.text.push(end),
                    None => pretty.indent(1),
                }
            }
            '}' | ']' => {
                pretty.indent(-1);
                pretty.text.push(dead_letter);
            }
            ',' => {
                pretty.text.push(',');
                pretty.indent(0);
            }
            ':' => pretty.text.push_str(": "),
            white if white.is_ascii_whitespace() => {}
            other => pretty.text.push(other),
        }
    }
    pretty.text
}

struct Pretty {
    text: String,
    depth: usize,
}

impl Pretty {
    fn indent(&mut self, by: isize) {
        self.depth = self.depth.saturating_add_signed(by);
        self.text.push('\n');
        self.text.push_str(&"  ".repeat(self.depth));
    }
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
