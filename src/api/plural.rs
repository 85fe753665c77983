//! Numbers of things in a sentence.

use std::fmt::Display;

/// `1 message`, `2 messages`.
pub fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// `position 3`, `positions 3 to 5`.
pub(crate) fn spanned<N: Display + PartialEq>(noun: &str, from: N, to: N) -> String {
    match from == to {
        true => format!("{noun} {from}"),
        false => format!("{noun}s {from} to {to}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_said_as_one() {
        assert_eq!(
            (counted(1, "dead letter"), counted(0, "line")),
            ("1 dead letter".into(), "0 lines".into())
        );
        assert_eq!(
            (spanned("position", 1, 1), spanned("position", 3, 5)),
            ("position 1".into(), "positions 3 to 5".into())
        );
    }
}
