//! Numbers of things and of bytes in a sentence.

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

/// A number of bytes in its unit: `1.5 KiB`, `12 MiB`.
pub fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let Some((shift, unit)) = units.into_iter().find(|(shift, _)| bytes >> shift > 0) else {
        return format!("{bytes} B");
    };
    match (bytes >> (shift - 10)) * 10 / 1_024 {
        tenths @ 100.. => format!("{} {unit}", tenths / 10),
        tenths => format!("{}.{} {unit}", tenths / 10, tenths % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_bytes_is_told_in_its_unit() {
        assert_eq!([5, 1_536, 12 << 20, 3 << 30].map(size), ["5 B", "1.5 KiB", "12 MiB", "3.0 GiB"]);
    }

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
