//! Words that a shell reads back as they are.

use crate::cli::out::printable;

/// As a shell reads it back: workflow IDs may hold anything.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./:@%+=,".contains(character);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// The argument that goes on behind something, which may be a workflow ID or a reason that somebody else has chosen.
pub(crate) fn after(place: &str) -> String {
    match printable(place) == place {
        true => format!("--after={}", quoted(place)),
        // It would be shown as another.
        false => "--after and what --json shows as `after`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workflow_id_is_quoted_for_the_shell() {
        assert_eq!(quoted("orders/4711"), "orders/4711");
        assert_eq!(quoted("orders/it's $HOME"), "'orders/it'\\''s $HOME'");
    }

    #[test]
    fn a_shell_reads_back_where_to_go_on() {
        for place in ["order 17", "o'brien", "x'; echo '", "-1", "", "$(id)"] {
            let script = format!("printf %s {}", after(place));
            let read = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(read.stdout).unwrap(), format!("--after={place}"));
        }
        assert!(after("a\nb").contains("--json"), "it cannot be shown");
    }
}
