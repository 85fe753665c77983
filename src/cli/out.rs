//! What a verb prints: rows for a person, or lines of JSON for a program.

use std::io;
use std::io::IsTerminal;
use std::io::Write;

use serde::Serialize;
use seriatim::api::foreign_text::visible;

/// Stdout. Unlike `println`, it does not panic when nobody reads any more.
pub(crate) struct Stdout {
    pub(crate) json: bool,
    /// Whether it tells of work that goes on when nobody reads any more.
    is_of_work: bool,
}

impl Stdout {
    pub(crate) fn new(json: bool) -> Stdout {
        Stdout { json, is_of_work: false }
    }

    /// For a verb that does something between what it prints: a reader who has seen enough does not stop it halfway.
    pub(crate) fn of_work(json: bool) -> Stdout {
        Stdout { json, is_of_work: true }
    }

    /// A line for a person; nothing when lines of JSON are printed.
    pub(crate) fn say(&self, line: impl AsRef<str>) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        self.print(line.as_ref().as_bytes())
    }

    /// A line of JSON; nothing for a person.
    pub(crate) fn json(&self, value: &impl Serialize) -> io::Result<()> {
        if !self.json {
            return Ok(());
        }
        self.print(&serde_json::to_vec(value)?)
    }

    fn print(&self, line: &[u8]) -> io::Result<()> {
        match write_line(line) {
            Err(error) if self.is_of_work && error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            printed => printed,
        }
    }
}

/// A line on stdout, whoever reads it.
pub(crate) fn write_line(line: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(line)?;
    stdout.write_all(b"\n")?;
    stdout.flush()
}

/// A line on stdout of a program that does its work whether or not somebody reads it.
pub(crate) fn write_unless_unread(line: &str) {
    let _ = write_line(line.as_bytes());
}

/// A remark on stderr, that does not belong to the result.
pub(crate) fn remark(line: impl AsRef<str>) {
    // Nothing can be done when nobody reads remarks.
    let _ = writeln!(io::stderr(), "{}", printable(line.as_ref()));
}

/// Whether a person can be asked.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a person; only a yes is a yes.
pub(crate) fn ask(question: &str) -> io::Result<bool> {
    write!(io::stderr(), "{} [y/N] ", printable(question))?;
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// A text on one line, in which nothing can command a terminal, hide, or turn other text around: what others sent may hold
/// anything.
pub(crate) fn printable(text: &str) -> String {
    let blank = |character: char| if character.is_control() { ' ' } else { character };
    visible(&text.chars().map(blank).collect::<String>(), false)
}

/// The first `chars_max` characters of a text on one line.
pub(crate) fn shortened(text: &str, chars_max: usize) -> String {
    let text = printable(text);
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_turns_text_around_is_written_out() {
        assert_eq!(printable("a\u{202e}b\n\u{feff}"), "a\u{27e8}U+202E\u{27e9}b \u{27e8}U+FEFF\u{27e9}");
    }

    #[test]
    fn what_others_sent_cannot_command_a_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\r\nc\u{9b}d"), "a [2Jb  c d");
        assert_eq!(shortened("caf\u{e9}s", 4), "caf\u{e9}...");
        assert_eq!(shortened("caf\u{e9}", 4), "caf\u{e9}");
    }
}
