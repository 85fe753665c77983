//! A mistake in a definition, with its place: for a person as a compiler shows it, for a machine as JSON.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use annotate_snippets::AnnotationKind;
use annotate_snippets::Level;
use annotate_snippets::Renderer;
use annotate_snippets::Snippet;
use serde::Serialize;

use crate::error::Misuse;
use crate::limits;

/// A mistake in a definition.
///
/// Displayed, it is one line: `workflows/orders.toml:3:8: ...`. [`Diagnostic::render`] shows the line of the file too, unless that may
/// hold a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; `None` when it is no single line's mistake.
    pub line: Option<usize>,
    /// The column in characters, from 1.
    pub column: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to write instead, if that can be said.
    pub help: Option<String>,
    #[serde(skip)]
    excerpt: Option<Excerpt>,
}

/// The text of the file, and the part of it that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Excerpt {
    text: Arc<str>,
    span: Range<usize>,
}

impl Excerpt {
    /// Whether a line of it may have a password, as URLs have: what is shown goes into logs.
    fn may_hold_secret(&self) -> bool {
        let start = self.text[..self.span.start].rfind('\n').map_or(0, |end| end + 1);
        let end =
            self.text[self.span.end..].find('\n').map_or(self.text.len(), |length| self.span.end + length);
        let is_secret = |line: &str| {
            let has_user = line.contains(':') && line.contains('@');
            has_user || line.contains("password=") || line.contains("password =")
        };
        self.text[start..end].lines().any(is_secret)
    }
}

impl Diagnostic {
    /// A mistake of a file as a whole.
    pub(crate) fn of_file(file: &Path, message: impl Into<String>, help: Option<String>) -> Diagnostic {
        let file = file.to_owned();
        Diagnostic { file, line: None, column: None, message: message.into(), help, excerpt: None }
    }

    /// A mistake at a place in a file.
    pub(crate) fn at(
        file: &Path,
        text: &Arc<str>,
        span: Range<usize>,
        message: impl Into<String>,
        help: Option<String>,
    ) -> Diagnostic {
        let start = floor_of_character(text, span.start);
        let end = floor_of_character(text, span.end).max(start);
        let (line, column) = line_and_column(text, start);
        Diagnostic {
            file: file.to_owned(),
            line: Some(line),
            column: Some(column),
            message: message.into(),
            help,
            excerpt: Some(Excerpt { text: text.clone(), span: start..end }),
        }
    }

    /// The mistake as a person reads it: what is wrong, the line of the file with the place marked, and what to write
    /// instead. With colours for a terminal.
    pub fn render(&self, colours: bool) -> String {
        let path = self.file.display().to_string();
        let title = Level::ERROR.primary_title(&self.message);
        let mut group = match self.excerpt.as_ref().filter(|excerpt| !excerpt.may_hold_secret()) {
            Some(Excerpt { text, span }) => {
                let mark = AnnotationKind::Primary.span(span.clone());
                title.element(Snippet::source(&**text).path(&path).annotation(mark))
            }
            None => {
                let origin = annotate_snippets::Origin::path(&path);
                title.element(match (self.line, self.column) {
                    (Some(line), Some(column)) => origin.line(line).char_column(column),
                    _ => origin,
                })
            }
        };
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help));
        }
        let renderer = if colours { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

fn floor_of_character(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Line and column of a place, both from 1.
pub(crate) fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at.min(text.len())];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// What is wrong, and what to write instead if that can be said.
pub(crate) type Trouble = (String, Option<String>);

/// The mistakes of one file, as they are found.
pub(crate) struct Mistakes {
    file: PathBuf,
    text: Arc<str>,
    found: Vec<Diagnostic>,
}

impl Mistakes {
    pub(crate) fn of(file: &Path, text: &str) -> Mistakes {
        Mistakes { file: file.to_owned(), text: Arc::from(text), found: Vec::new() }
    }

    /// Records a mistake at a place of the file.
    pub(crate) fn add(&mut self, span: &Range<usize>, message: impl Into<String>) {
        self.put(span, message.into(), None);
    }

    /// Records a mistake, and what to write instead.
    pub(crate) fn add_with_help(
        &mut self,
        span: &Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.put(span, message.into(), Some(help.into()));
    }

    /// What was found; where nothing was, that is a mistake at a place of the file.
    pub(crate) fn found<T>(&mut self, found: Result<T, Trouble>, span: &Range<usize>) -> Option<T> {
        found.map_err(|(message, help)| self.put(span, message, help)).ok()
    }

    /// What is as it may be; what is not is a mistake at a place of the file.
    pub(crate) fn checked<T>(&mut self, checked: Result<T, Misuse>, span: &Range<usize>) -> Option<T> {
        checked.map_err(|misuse| self.put(span, misuse.to_string(), None)).ok()
    }

    /// Records a mistake of the file as a whole.
    pub(crate) fn add_of_file(&mut self, message: impl Into<String>, help: impl Into<String>) {
        self.found.push(Diagnostic::of_file(&self.file, message, Some(help.into())));
    }

    fn put(&mut self, span: &Range<usize>, message: String, help: Option<String>) {
        if self.found.len() < limits::MISTAKES_MAX {
            self.found.push(Diagnostic::at(&self.file, &self.text, span.clone(), message, help));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Whether a mistake was found in the table with this header.
    pub(crate) fn are_below(&self, header: &Range<usize>) -> bool {
        let rest = self.text.get(header.end..).unwrap_or_default();
        let end = rest.find("\n[").map_or(self.text.len(), |length| header.end + length);
        self.are_within(&(header.start..end))
    }

    /// Whether a mistake was found that begins in this part of the file.
    pub(crate) fn are_within(&self, part: &Range<usize>) -> bool {
        let mut starts = self.found.iter().filter_map(|mistake| Some(mistake.excerpt.as_ref()?.span.start));
        starts.any(|start| (part.start..=part.end).contains(&start))
    }

    /// The text of the file.
    pub(crate) fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// All that were found, in the order of the file.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|mistake| (mistake.line, mistake.column));
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_line_and_a_column_in_characters() {
        let text = "a = 1\n# \u{e9}\u{e9} b\n";
        assert_eq!(line_and_column(text, 0), (1, 1));
        assert_eq!(line_and_column(text, text.find('b').unwrap()), (2, 6));
        assert_eq!(line_and_column(text, text.len()), (3, 1));
        assert_eq!(line_and_column(text, 1_000), (3, 1));
    }

    #[test]
    fn a_mistake_is_shown_at_its_place() {
        let mut mistakes = Mistakes::of(Path::new("w/a.toml"), "lokc = \"30s\"\n");
        mistakes.add_with_help(&(0..4), "`lokc` is not known", "did you mean `lock`?");
        let found = mistakes.into_sorted();
        let expected = "error: `lokc` is not known\n --> w/a.toml:1:1\n  |\n1 | lokc = \"30s\"\n  | ^^^^\n  |\n  = help: did \
                        you mean `lock`?";
        assert_eq!(found[0].render(false), expected);
        assert_eq!(found[0].to_string(), "w/a.toml:1:1: `lokc` is not known; did you mean `lock`?");
        let json = serde_json::to_string(&found[0]).unwrap();
        let expected = r#"{"file":"w/a.toml","line":1,"column":1,"message":"`lokc` is not known","help":"did you mean `lock`?"}"#;
        assert_eq!(json, expected);
    }

    #[test]
    fn any_place_can_be_shown_even_one_that_is_not_there() {
        let text: Arc<str> = Arc::from("\u{e9}");
        for span in [0..0, 1..2, 0..9, 7..9, 2..2] {
            let mistake = Diagnostic::at(Path::new("a"), &text, span, "wrong", None);
            assert!(mistake.render(true).contains("wrong"));
        }
        assert!(Diagnostic::of_file(Path::new("a"), "wrong", None).render(false).contains("--> a"));
    }
}
