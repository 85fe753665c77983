//! A source file as the checks see it: its text, and its code without comments, strings and tests.

use std::fs;
use std::path::Path;

/// One file of the package.
pub(crate) struct Source {
    /// Relative to the package, with forward slashes.
    pub(crate) path: String,
    /// The file as it is.
    pub(crate) text: String,
    /// The lines of the file with comments and literals blanked out; as many as in `text`.
    pub(crate) code: Vec<String>,
    /// For each line, whether it belongs to a test.
    pub(crate) is_test: Vec<bool>,
}

impl Source {
    /// A source from its path and text, so that a test can plant one.
    pub(crate) fn new(path: &str, text: &str) -> Source {
        let code: Vec<String> = without_comments_and_literals(text).lines().map(str::to_owned).collect();
        let is_test = if is_test_file(path) { vec![true; code.len()] } else { test_lines(&code) };
        Source { path: path.to_owned(), text: text.to_owned(), code, is_test }
    }

    /// Every file of this extension in these folders of the package, in order of path.
    /// A folder that does not exist holds none.
    pub(crate) fn all(folders: &[&str], extension: &str) -> Vec<Source> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut sources = Vec::new();
        for folder in folders {
            collect(root, &root.join(folder), extension, &mut sources);
        }
        sources.sort_by(|left, right| left.path.cmp(&right.path));
        sources
    }

    /// The name of the file without its extension.
    pub(crate) fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.split('.').next().unwrap_or_default()
    }
}

/// How far a line is set in. A blank line is not set in at all.
pub(crate) fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn collect(root: &Path, folder: &Path, extension: &str, sources: &mut Vec<Source>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("a folder of the package can be listed").path();
        if path.is_dir() {
            collect(root, &path, extension, sources);
        } else if path.extension().is_some_and(|found| found == extension) {
            let text = fs::read_to_string(&path).expect("a source is UTF-8");
            let relative = path.strip_prefix(root).expect("the path was built from the root");
            sources.push(Source::new(&relative.to_string_lossy().replace('\\', "/"), &text));
        }
    }
}

fn is_test_file(path: &str) -> bool {
    !path.starts_with("src/") || path.split('/').any(|part| part == "tests" || part == "tests.rs")
}

/// Marks every item that is compiled for tests alone, found by indentation as rustfmt leaves it.
fn test_lines(code: &[String]) -> Vec<bool> {
    let mut is_test = vec![false; code.len()];
    let mut at = 0;
    while at < code.len() {
        let line = code[at].trim_start();
        let end = if line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test,") {
            end_of_item(code, at)
        } else {
            at
        };
        if end > at {
            is_test[at..=end].fill(true);
        }
        at = end + 1;
    }
    is_test
}

/// The last line of the item whose first attribute is on line `start`.
fn end_of_item(code: &[String], start: usize) -> usize {
    let depth = indent(&code[start]);
    let is_end = |line: &String| {
        let trimmed = line.trim();
        let closes = trimmed.starts_with('}') || trimmed.ends_with([';', ',', '}']);
        indent(line) == depth && closes
    };
    let rest = code.iter().skip(start).position(is_end);
    rest.map_or(code.len() - 1, |offset| start + offset)
}

/// The text with comments and the content of literals turned into blanks; line breaks stay.
fn without_comments_and_literals(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = blank_end(&chars, at);
        if end == at {
            code.push(chars[at]);
            at += 1;
        } else {
            let blanks = chars[at..end].iter().map(|&char| if char == '\n' { '\n' } else { ' ' });
            code.extend(blanks);
            at = end;
        }
    }
    code
}

/// Where the comment or literal that starts at `at` ends; `at` itself when none starts there.
fn blank_end(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied().unwrap_or('\0');
    let end = match (chars[at], next) {
        ('/', '/') => find(chars, at, |rest| rest[0] == '\n'),
        ('/', '*') => block_comment_end(chars, at),
        ('"', _) => quoted_end(chars, at, '"'),
        ('r', '"' | '#') => raw_string_end(chars, at).unwrap_or(at),
        ('\'', '\\') => quoted_end(chars, at, '\''),
        ('\'', _) if chars.get(at + 2) == Some(&'\'') => at + 3,
        _ => at,
    };
    end.min(chars.len())
}

fn find(chars: &[char], from: usize, is_here: impl Fn(&[char]) -> bool) -> usize {
    (from..chars.len()).find(|&at| is_here(&chars[at..])).unwrap_or(chars.len())
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at < chars.len() {
        if chars[at..].starts_with(&['/', '*']) {
            depth += 1;
            at += 2;
        } else if chars[at..].starts_with(&['*', '/']) {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn quoted_end(chars: &[char], start: usize, quote: char) -> usize {
    let mut at = start + 1;
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// The end of a raw string; none when `r` is the end of a name or begins a raw identifier.
fn raw_string_end(chars: &[char], start: usize) -> Option<usize> {
    let before = |back: usize| start.checked_sub(back).map_or(' ', |at| chars[at]);
    let is_name = |char: char| char.is_alphanumeric() || char == '_';
    let is_prefixed = matches!(before(1), 'b' | 'c') && !is_name(before(2));
    if is_name(before(1)) && !is_prefixed {
        return None;
    }
    let hashes = chars[start + 1..].iter().take_while(|&&char| char == '#').count();
    let open = start + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return None;
    }
    let mut close = vec!['"'];
    close.extend(vec!['#'; hashes]);
    Some(find(chars, open + 1, |rest| rest.starts_with(&close)) + close.len())
}

#[test]
fn comments_and_literals_are_not_code() {
    let text = "a /* b /* c */ b */ d // e\nlet s = \"f \\\" g\"; let r = br#\"h \" i\"#; let c = '\\''; j<'k>('l')\n";
    let code = Source::new("src/x.rs", text).code;
    assert_eq!(code.len(), 2);
    assert_eq!(code[0].split_whitespace().collect::<String>(), "ad");
    assert_eq!(code[1].split_whitespace().collect::<String>(), "lets=;letr=b;letc=;j<'k>()");
}

#[test]
fn a_string_over_several_lines_keeps_the_count_of_lines() {
    let source = Source::new("src/x.rs", "let s = \"one\ntwo\n\";\nlast\n");
    assert_eq!(source.code.len(), 4);
    assert_eq!(source.code[3], "last");
}

#[test]
fn the_lines_of_a_test_module_are_known() {
    let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n#[cfg(test)]\nmod more;\nx\n";
    let source = Source::new("src/x.rs", text);
    assert_eq!(source.is_test, [false, true, true, true, true, true, false, true, true, false]);
    let field = Source::new("src/x.rs", "struct A {\n    #[cfg(test)]\n    b: u8,\n    c: u8,\n}\n");
    assert_eq!(field.is_test, [false, true, true, false, false]);
    assert_eq!(Source::new("src/engine/tests.rs", "a\nb\n").is_test, [true, true]);
}
