//! What is wrong with JSON, in words for people who do not know our types.

/// What is wrong with JSON that could not be read, in plain words and with its place.
pub fn plain(error: &serde_json::Error) -> String {
    plain_text(&error.to_string())
}

/// The same for a message of which only the text is there.
pub(crate) fn plain_text(described: &str) -> String {
    let (described, place) = match described.rsplit_once(" at line ") {
        Some((described, place)) => (described, place_of(place)),
        None => (described, None),
    };
    let described = in_words(described);
    match place {
        Some(place) => format!("{described} ({place})"),
        None => described,
    }
}

/// `1 column 17` as people count.
fn place_of(place: &str) -> Option<String> {
    let (line, column) = place.split_once(" column ")?;
    Some(match (line, column) {
        (_, "0") => format!("line {line}"),
        ("1", column) => format!("character {column}"),
        (line, column) => format!("line {line}, character {column}"),
    })
}

fn in_words(described: &str) -> String {
    if let Some((found, meant)) = described.strip_prefix("invalid type: ").and_then(in_two) {
        return format!("{} where {} is meant", thing(found), kind(meant));
    }
    if let Some((found, meant)) = described.strip_prefix("invalid value: ").and_then(in_two) {
        return format!("{} where {} is meant", thing(found), kind(meant));
    }
    if let Some((found, known)) = described.strip_prefix("unknown field ").and_then(in_two) {
        return format!("there is no field {found}; known are {}", known.trim_start_matches("one of "));
    }
    if let Some((found, known)) = described.strip_prefix("unknown variant ").and_then(in_two) {
        return format!("{found} is not one of {}", known.trim_start_matches("one of "));
    }
    if let Some(field) = described.strip_prefix("missing field ") {
        return format!("the field {field} is missing");
    }
    if let Some(field) = described.strip_prefix("duplicate field ") {
        return format!("the field {field} is there twice");
    }
    match described {
        "trailing characters" => "something follows the JSON value".to_owned(),
        described if described.starts_with("EOF while parsing") => {
            "it is not JSON: it ends too early".to_owned()
        }
        described if described.starts_with("expected ") => "it is not JSON".to_owned(),
        described => described.to_owned(),
    }
}

fn in_two(described: &str) -> Option<(&str, &str)> {
    described.rsplit_once(", expected ")
}

/// What was found.
fn thing(found: &str) -> String {
    let named = [("string ", "the text "), ("integer ", ""), ("floating point ", ""), ("boolean ", "")];
    for (theirs, ours) in named {
        if let Some(value) = found.strip_prefix(theirs) {
            return format!("{ours}{}", value.trim_matches('`'));
        }
    }
    match found {
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        "unit value" => "null".to_owned(),
        other => other.to_owned(),
    }
}

/// What was meant.
fn kind(meant: &str) -> &str {
    match meant {
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => "a whole number from 0 on",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "a borrowed string" => "text",
        "a sequence" => "a list",
        "a map" => "an object",
        other if other.starts_with("struct ") || other.starts_with("internally tagged enum") => "an object",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::SendEnvelope;

    fn describe(json: &str) -> String {
        plain(&serde_json::from_str::<SendEnvelope>(json).unwrap_err())
    }

    #[test]
    fn what_is_wrong_is_told_without_a_type_of_ours() {
        assert_eq!(
            describe(r#"{"position":"3"}"#),
            "the text \"3\" where a whole number from 0 on is meant (character 15)"
        );
        assert_eq!(
            describe(r#"{"position":-3}"#),
            "-3 where a whole number from 0 on is meant (character 14)"
        );
        assert_eq!(describe("3"), "3 where an object is meant (character 1)");
        assert_eq!(describe("{"), "it is not JSON: it ends too early (character 1)");
        assert_eq!(describe("nonsense"), "it is not JSON (character 2)");
        assert!(describe(r#"{"positon":3}"#).starts_with("there is no field `positon`; known are `"));
        assert_eq!(plain_text("missing field `id`"), "the field `id` is missing");
    }
}
