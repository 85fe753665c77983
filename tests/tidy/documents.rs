//! What documents and comments say: files that exist, and words that a stranger knows.

use crate::source::Source;

/// Words for what the field has a standard term for: the word, and the term.
const PRIVATE_WORDS: &[(&str, &str)] = &[
    ("crew", "supervisor"),
    ("doorkeeper", "authorization"),
    ("keepsake", "what it is"),
    ("lookout", "monitor"),
    ("parcel", "batch"),
    ("patience", "timeout"),
    ("shelf", "memtable"),
    ("shelves", "memtables"),
    ("spent", "exhausted"),
];

/// Where one of them is right: a decision as it was made, bytes as an older version wrote them, names that are still read.
const EXEMPT: &[&str] = &[
    "docs/decisions/",
    "src/engine/store/format3/",
    "alias = \"spent\"",
    "contains(\"spent\")",
    "hold_kind(\"spent\")",
];

/// Rust files that a document names and that do not exist.
pub(crate) fn missing_files(documents: &[Source], sources: &[Source]) -> Vec<String> {
    let exists = |name: &str| {
        sources.iter().any(|source| source.path == name || source.path.ends_with(&format!("/{name}")))
    };
    let mut violations = Vec::new();
    for document in documents.iter().filter(|document| !document.path.starts_with("docs/decisions/")) {
        for (number, line) in document.text.lines().enumerate() {
            let quoted = line.split('`').skip(1).step_by(2);
            for name in quoted.filter(|name| name.ends_with(".rs") && !name.contains([' ', '*'])) {
                if !exists(name) {
                    violations.push(format!("{}:{}: there is no file {name}", document.path, number + 1));
                }
            }
        }
    }
    violations
}

/// Words that only this code uses in this meaning.
pub(crate) fn private_words(sources: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    for source in sources.iter().filter(|source| !EXEMPT.iter().any(|start| source.path.starts_with(start))) {
        for (number, line) in source.text.lines().enumerate() {
            if EXEMPT.iter().any(|part| line.contains(part)) {
                continue;
            }
            let words = line.split(|letter: char| !letter.is_ascii_alphabetic()).map(str::to_ascii_lowercase);
            for word in words {
                if let Some((_, term)) = PRIVATE_WORDS.iter().find(|(private, _)| *private == word) {
                    violations.push(format!("{}:{}: `{word}`: say {term}", source.path, number + 1));
                }
            }
        }
    }
    violations
}

/// Links of documents to files or headings that do not exist.
pub(crate) fn broken_links(documents: &[Source], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut violations = Vec::new();
    for document in documents {
        for (number, target) in links(&document.text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { document.path.clone() } else { joined(&document.path, file) };
            let page = documents.iter().find(|document| document.path == path);
            let leads = match page {
                Some(page) => anchor.is_empty() || headings(&page.text).any(|heading| heading == anchor),
                None => exists(&path),
            };
            if !leads {
                violations.push(format!("{}:{number}: the link {target} leads nowhere", document.path));
            }
        }
    }
    violations
}

/// The targets of links outside of code, each with its line.
fn links(text: &str) -> Vec<(usize, &str)> {
    let (mut found, mut is_code) = (Vec::new(), false);
    for (number, line) in text.lines().enumerate() {
        is_code ^= line.starts_with("```");
        let prose = line.split('`').step_by(2);
        for part in prose.filter(|_| !is_code) {
            let targets = part.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            found.extend(targets.map(|(target, _)| (number + 1, target)));
        }
    }
    found
}

/// The path of a file that is named from another.
fn joined(from: &str, file: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in file.trim_end_matches('/').split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors of a page's headings, as web pages make them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix('#'));
    lines.map(|line| {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[test]
fn a_document_that_names_a_lost_file_is_found() {
    let sources = [Source::new("src/engine/writer.rs", "")];
    let found = |text| missing_files(&[Source::new("docs/ARCHITECTURE.md", text)], &sources).len();
    assert_eq!(found("in `writer.rs` and `engine/writer.rs`, `src/engine/writer.rs`"), 0);
    assert_eq!(found("in `iter.rs`, then\n`writer2.rs`"), 2);
}

#[test]
fn a_private_word_is_found() {
    let found = |path, text| private_words(&[Source::new(path, text)]).len();
    assert_eq!(found("src/a.rs", "/// How long the patience lasts.\nlet shelves = 1;"), 2);
    assert_eq!(found("docs/decisions/0001-a.md", "on the shelves"), 0);
    assert_eq!(found("src/a.rs", "    #[serde(alias = \"spent\")]"), 0);
}

#[test]
fn a_broken_link_is_found() {
    let page = |text: &str| [Source::new("docs/a.md", text), Source::new("docs/b.md", "# One two, three\n")];
    let found = |text: &str| broken_links(&page(text), |path| path == "src/lib.rs").len();
    assert_eq!(found("[a](b.md), [b](b.md#one-two-three), [c](../src/lib.rs), [d](https://x.y)"), 0);
    assert_eq!(found("[a](c.md) and [b](b.md#four), [c](lib.rs)"), 3);
    assert_eq!(found("```\n[a](c.md)\n```\n`[a](c.md)`"), 0, "code is no link");
}
