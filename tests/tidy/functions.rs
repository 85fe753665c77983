//! How long functions are, measured by indentation in code that rustfmt has formatted.

use crate::source::Source;
use crate::source::indent;

/// A function of more lines does not fit a screen.
const LINES_MAX: usize = 70;
/// Of a hundred functions, so many may be longer: a `match` over all commands is one honest table.
const LONG_PERCENT_MAX: usize = 3;

/// What was measured, tests left out.
pub(crate) struct Measure {
    total: usize,
    /// One line for each function that is too long.
    pub(crate) long: Vec<String>,
}

impl Measure {
    pub(crate) fn is_within_share(&self) -> bool {
        self.long.len() * 100 <= self.total * LONG_PERCENT_MAX
    }

    pub(crate) fn summary(&self) -> String {
        let (long, total) = (self.long.len(), self.total);
        format!("{long} of {total} functions exceed {LINES_MAX} lines; {LONG_PERCENT_MAX} % may")
    }
}

/// Measures every function outside tests.
pub(crate) fn measure(sources: &[Source]) -> Measure {
    let mut measure = Measure { total: 0, long: Vec::new() };
    for source in sources {
        for start in (0..source.code.len()).filter(|&line| !source.is_test[line]) {
            let Some(lines) = function_lines(&source.code[start..]) else {
                continue;
            };
            measure.total += 1;
            if lines > LINES_MAX {
                let (path, line) = (&source.path, start + 1);
                measure.long.push(format!("{path}:{line}: this function has {lines} lines"));
            }
        }
    }
    measure
}

/// Whether a function begins on this line.
pub(crate) fn begins_function(line: &str) -> bool {
    // `pub(in some::room)` is two words, the second one with the bracket.
    let is_prefix = |word: &&str| {
        word.starts_with("pub")
            || word.ends_with(')')
            || ["const", "async", "unsafe", "extern", "default"].contains(word)
    };
    line.split_whitespace().find(|word| !is_prefix(word)) == Some("fn")
}

/// How many lines the function has that begins on the first line; none if there is no body.
fn function_lines(code: &[String]) -> Option<usize> {
    if !begins_function(&code[0]) {
        return None;
    }
    let depth = indent(&code[0]);
    let mut is_open = false;
    for (offset, line) in code.iter().enumerate() {
        let text = line.trim();
        if is_open && indent(line) == depth && text.starts_with('}') {
            return Some(offset + 1);
        }
        if !is_open && text.ends_with(';') {
            return None;
        }
        if !is_open && text.ends_with('}') {
            return Some(offset + 1);
        }
        is_open |= text.ends_with('{');
    }
    None
}

#[cfg(test)]
fn function(name: &str, lines: usize) -> String {
    format!("pub fn {name}(\n    a: u8,\n) -> u8 {{\n{}}}\n", "    work();\n".repeat(lines - 4))
}

#[test]
fn a_function_is_measured_from_its_name_to_its_brace() {
    let lengths = |text: &str| {
        let code = Source::new("src/x.rs", text).code;
        (0..code.len()).filter_map(|at| function_lines(&code[at..])).collect::<Vec<_>>()
    };
    assert_eq!(lengths(&function("a", 70)), [70]);
    assert_eq!(
        lengths("trait T {\n    fn declared(\n        &self,\n    ) -> u8;\n    fn empty() {}\n}\n"),
        [1]
    );
    let nested = "impl T {\n    async fn outer<A>()\n    where\n        A: B,\n    {\n        {\n        }\n    }\n}\n";
    assert_eq!(lengths(nested), [7]);
    assert_eq!(lengths("pub(in crate::a) const fn a() {\n}\nlet f: fn() = g;\n"), [2]);
}

#[test]
fn one_long_function_is_within_the_share_of_many_and_not_of_few() {
    let planted = |short: usize| {
        let text = function("long", 71) + &function("short", 70).repeat(short);
        measure(&[Source::new("src/x.rs", &text)])
    };
    assert!(planted(33).is_within_share());
    let measure = planted(32);
    assert!(!measure.is_within_share());
    assert_eq!(measure.long, ["src/x.rs:1: this function has 71 lines"]);
    assert_eq!(measure.summary(), "1 of 33 functions exceed 70 lines; 3 % may");
}

#[test]
fn a_long_test_is_not_counted() {
    let text = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function("long", 99).replace('\n', "\n    "));
    assert_eq!(measure(&[Source::new("src/x.rs", &text)]).total, 0);
}
