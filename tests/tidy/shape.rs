//! How files look: names, lengths, letters, first sentences, and what a declaring file may hold.

use crate::functions;
use crate::source::Source;
use std::collections::BTreeSet;

const FILE_LINES_MAX: usize = 500;

/// Names that say nothing about what is inside; `core` would shadow Rust's own.
const EMPTY_NAMES: &[&str] =
    &["util", "utils", "common", "helper", "helpers", "type", "types", "manager", "managers", "core"];

/// Lines of src/ that may hold more than ASCII: the file, a part of the line, and why.
pub(crate) const NOT_ASCII: &[(&str, &str, &str)] = &[];

/// `super::super`, which nobody can read without counting.
pub(crate) fn double_climbs(sources: &[Source]) -> Vec<String> {
    by_code_line(sources, |line| {
        line.contains("super::super").then(|| "write the path from `crate::`, not `super::super`".to_owned())
    })
}

/// Files and folders whose name says nothing.
pub(crate) fn empty_names(sources: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    for source in sources {
        let parts = source.path.split('/').map(|part| part.split('.').next().unwrap_or_default());
        for part in parts.filter(|part| EMPTY_NAMES.contains(part)) {
            violations.push(format!(
                "{}: `{part}` does not say what is inside: name the noun or verb",
                source.path
            ));
        }
    }
    violations
}

/// Lines that say what was not tried in a way that the test harness keeps to itself.
pub(crate) fn silent_skips(sources: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    for source in sources {
        for (number, line) in source.text.lines().enumerate() {
            if line.contains("println!(\"skipped") || line.contains("println!(\"tried nothing") {
                violations.push(format!(
                    "{}:{}: nobody reads it: say it with `skip`",
                    source.path,
                    number + 1
                ));
            }
        }
    }
    violations
}

/// Files that hold more than one thing, by their length.
pub(crate) fn long_files(sources: &[Source]) -> Vec<String> {
    let long = sources.iter().filter(|source| source.text.lines().count() > FILE_LINES_MAX);
    long.map(|source| {
        let (path, lines) = (&source.path, source.text.lines().count());
        format!("{path}: {lines} lines; at most {FILE_LINES_MAX}: it holds two things, give each its file")
    })
    .collect()
}

/// Lines with letters outside ASCII that are not listed as exceptions.
pub(crate) fn foreign_letters(sources: &[Source], exceptions: &[(&str, &str, &str)]) -> Vec<String> {
    let mut violations = Vec::new();
    for source in sources {
        for (number, line) in source.text.lines().enumerate() {
            let is_listed =
                exceptions.iter().any(|(path, part, _)| *path == source.path && line.contains(part));
            if let Some(letter) = line.chars().find(|letter| !letter.is_ascii() && !is_listed) {
                let (path, line) = (&source.path, number + 1);
                violations.push(format!(
                    "{path}:{line}: `{letter}` is not ASCII: write it in ASCII, or list the line"
                ));
            }
        }
    }
    violations
}

/// Anything but declarations in a `mod.rs`, and functions in `lib.rs`.
pub(crate) fn logic_in_declarations(sources: &[Source]) -> Vec<String> {
    let (mods, others): (Vec<&Source>, Vec<&Source>) =
        sources.iter().partition(|source| source.stem() == "mod");
    let mut violations = Vec::new();
    for source in mods {
        let logic = source.code.iter().position(|line| !is_declaration(line));
        violations.extend(logic.map(|line| {
            let line = line + 1;
            format!("{}:{line}: mod.rs only declares and re-exports: move this to a named file", source.path)
        }));
    }
    for source in others.iter().filter(|source| source.path == "src/lib.rs") {
        let function = source.code.iter().position(|line| functions::begins_function(line));
        violations.extend(function.map(|line| {
            let line = line + 1;
            format!(
                "{}:{line}: lib.rs tells the story and holds no function: move it to its room",
                source.path
            )
        }));
    }
    violations
}

/// Whether a line of a `mod.rs` is a declaration, a re-export, or a part of one.
fn is_declaration(line: &str) -> bool {
    let is_inside_or_blank = line.is_empty() || line.starts_with([' ', '}', ']', ')', '#']);
    if is_inside_or_blank {
        return true;
    }
    let is_visibility = |word: &&str| word.starts_with("pub") || word.ends_with(')');
    let item = line.split_whitespace().find(|word| !is_visibility(word)).unwrap_or_default();
    match item {
        "use" => true,
        "mod" => line.trim_end().ends_with(';'),
        _ => false,
    }
}

/// Files, and public modules inside files, that do not begin with a `//!` sentence.
pub(crate) fn untold_modules(sources: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    for source in sources {
        let lines: Vec<&str> = source.text.lines().collect();
        if !begins_with_sentence(&lines) {
            violations
                .push(format!("{}:1: begin with `//! ` and a sentence that says what this is", source.path));
        }
        for (at, line) in source.code.iter().enumerate() {
            let is_inline = line.trim_start().starts_with("pub mod ") && line.trim_end().ends_with('{');
            let is_told_before = at > 0 && lines[at - 1].trim_start().starts_with("///");
            if is_inline && !is_told_before && !begins_with_sentence(&lines[at + 1..]) {
                let (path, line) = (&source.path, at + 1);
                violations.push(format!("{path}:{line}: begin this module with `//! ` and a sentence"));
            }
        }
    }
    violations
}

/// Whether the first paragraph of the inner documentation is there and ends like a sentence.
fn begins_with_sentence(lines: &[&str]) -> bool {
    let comments = lines.iter().map_while(|line| line.trim().strip_prefix("//!"));
    let paragraph: Vec<&str> = comments.map(str::trim).take_while(|comment| !comment.is_empty()).collect();
    paragraph.last().is_some_and(|last| last.ends_with(['.', '!', '?', ':']))
}

/// Decisions without a number of their own or without a title. A README may list them.
pub(crate) fn loose_decisions(sources: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    let mut numbers = BTreeSet::new();
    for source in sources.iter().filter(|source| source.stem() != "README") {
        let path = &source.path;
        let number = source.stem().split('-').next().and_then(|digits| digits.parse::<u32>().ok());
        let is_named = source.stem().contains('-') && number.is_some();
        if !is_named {
            violations.push(format!("{path}: name it by number and subject: 0001-why-so.md"));
        } else if !numbers.insert(number) {
            violations.push(format!("{path}: its number is already taken"));
        }
        if !source.text.lines().next().is_some_and(|line| line.starts_with("# ") && line.len() > 2) {
            violations.push(format!("{path}:1: begin with a title: `# ...`"));
        }
    }
    violations
}

fn by_code_line(sources: &[Source], check: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut violations = Vec::new();
    for source in sources {
        for (number, line) in source.code.iter().enumerate() {
            violations.extend(check(line).map(|what| format!("{}:{}: {what}", source.path, number + 1)));
        }
    }
    violations
}

#[cfg(test)]
fn count(check: impl Fn(&[Source]) -> Vec<String>, path: &str, text: &str) -> usize {
    check(&[Source::new(path, text)]).len()
}

#[test]
fn a_planted_double_climb_is_found() {
    assert_eq!(count(double_climbs, "src/a.rs", "use super::super::b;\n"), 1);
    assert_eq!(count(double_climbs, "src/a.rs", "use super::b; // super::super\n"), 0);
}

#[test]
fn a_planted_empty_name_is_found() {
    for path in ["src/util.rs", "src/engine/types.rs", "tests/common/mod.rs", "src/core/lock.rs"] {
        assert_eq!(count(empty_names, path, ""), 1, "{path}");
    }
    assert_eq!(count(empty_names, "src/engine/commonplace.rs", ""), 0);
}

#[test]
fn a_planted_long_file_is_found() {
    assert_eq!(count(long_files, "src/a.rs", &"\n".repeat(501)), 1);
    assert_eq!(count(long_files, "src/a.rs", &"\n".repeat(500)), 0);
}

#[test]
fn a_planted_foreign_letter_is_found_unless_its_line_is_listed() {
    let check = |sources: &[Source]| foreign_letters(sources, &[("src/a.rs", "// Caf", "a name")]);
    assert_eq!(count(check, "src/a.rs", "// Caf\u{e9}\nlet a = \"\u{2192}\";\n"), 1);
    assert_eq!(count(check, "src/b.rs", "// Caf\u{e9}\n"), 1);
    assert_eq!(count(check, "src/a.rs", "// Caf\u{e9}\n"), 0);
}

#[test]
fn planted_logic_in_a_declaring_file_is_found() {
    let honest = "//! A.\n\n#[cfg(test)]\nmod a;\npub(crate) mod b;\npub use a::{\n    c,\n    d,\n};\n";
    assert_eq!(count(logic_in_declarations, "src/a/mod.rs", honest), 0);
    for logic in
        ["fn f() {}\n", "impl A {\n}\n", "pub(crate) struct A;\n", "mod a {\n}\n", "const A: u8 = 1;\n"]
    {
        assert_eq!(count(logic_in_declarations, "src/a/mod.rs", logic), 1, "{logic}");
    }
    assert_eq!(count(logic_in_declarations, "src/lib.rs", "pub fn f() {\n}\n"), 1);
    assert_eq!(count(logic_in_declarations, "src/a.rs", "pub fn f() {\n}\n"), 0);
}

#[test]
fn a_planted_untold_module_is_found() {
    assert_eq!(count(untold_modules, "src/a.rs", "//! One sentence\n//! over two lines.\n"), 0);
    for text in ["", "use a;\n", "/// A.\n", "//!\n//! A.\n", "//! no sentence\n"] {
        assert_eq!(count(untold_modules, "src/a.rs", text), 1, "{text}");
    }
    assert_eq!(count(untold_modules, "src/a.rs", "//! A.\npub mod b {\n    //! B.\n}\n"), 0);
    assert_eq!(count(untold_modules, "src/a.rs", "//! A.\n/// B.\npub mod b {\n}\n"), 0);
    assert_eq!(count(untold_modules, "src/a.rs", "//! A.\npub mod b {\n}\n"), 1);
}

#[test]
fn a_planted_silent_skip_is_found() {
    for line in ["println!(\"skipped: a: b\");\n", "eprintln!(\"tried nothing: a\");\n"] {
        assert_eq!(count(silent_skips, "tests/a.rs", line), 1, "{line}");
    }
    assert_eq!(count(silent_skips, "tests/a.rs", "skip(\"a\", \"b\");\n"), 0);
}

#[test]
fn a_planted_loose_decision_is_found() {
    assert_eq!(count(loose_decisions, "docs/decisions/0001-one-writer.md", "# One writer\n"), 0);
    assert_eq!(count(loose_decisions, "docs/decisions/README.md", "Decisions.\n"), 0);
    assert_eq!(count(loose_decisions, "docs/decisions/one-writer.md", "# One writer\n"), 1);
    assert_eq!(count(loose_decisions, "docs/decisions/0001-one-writer.md", "One writer\n"), 1);
    let twice =
        ["docs/decisions/0001-a.md", "docs/decisions/0001-b.md"].map(|path| Source::new(path, "# A\n"));
    assert_eq!(loose_decisions(&twice).len(), 1);
}
