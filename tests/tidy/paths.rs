//! The paths a source names, written out in full: groups are opened, `self` and `super` resolved.

use crate::source::Source;

/// A path that a line of code names.
pub(crate) struct Named {
    /// Counted from one.
    pub(crate) line: usize,
    /// Whether that line belongs to a test.
    pub(crate) is_test: bool,
    /// `crate::engine::store` as three segments. A glob ends with `*`; a plain word is one segment.
    pub(crate) segments: Vec<String>,
}

/// Everything that looks like a path or a word in the code of a source.
pub(crate) fn named(source: &Source) -> Vec<Named> {
    let tokens = tokens(&source.code);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        at = match tokens[at].1 {
            Token::Word(_) if is_visibility(&tokens[..at]) => read(&tokens, at, &[], &mut Vec::new()),
            Token::Word(_) => read(&tokens, at, &[], &mut found),
            _ => at + 1,
        };
    }
    let module = module_of(&source.path);
    let resolved = found.into_iter().map(|(line, segments)| {
        let is_test = source.is_test[line];
        Named { line: line + 1, is_test, segments: resolve(&module, is_test, segments) }
    });
    resolved.collect()
}

/// A path in segments, from its text.
pub(crate) fn segments(path: &str) -> Vec<String> {
    path.split("::").map(str::to_owned).collect()
}

enum Token {
    Word(String),
    Colons,
    Open,
    Close,
    Comma,
    Star,
    Other,
}

fn tokens(code: &[String]) -> Vec<(usize, Token)> {
    let mut tokens = Vec::new();
    for (line, text) in code.iter().enumerate() {
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let word = rest.split(|char: char| !char.is_alphanumeric() && char != '_').next().unwrap_or("");
            let (token, length) = match first {
                _ if !word.is_empty() && !first.is_numeric() => (Token::Word(word.to_owned()), word.len()),
                _ if !word.is_empty() => (Token::Other, word.len()),
                ':' if rest.starts_with("::") => (Token::Colons, 2),
                '{' => (Token::Open, 1),
                '}' => (Token::Close, 1),
                ',' => (Token::Comma, 1),
                '*' => (Token::Star, 1),
                _ => (Token::Other, first.len_utf8()),
            };
            tokens.push((line, token));
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

/// Whether what follows is the room of `pub(in some::room)`, which imports nothing.
fn is_visibility(before: &[(usize, Token)]) -> bool {
    let is = |token: &Token, expected: &str| matches!(token, Token::Word(word) if word == expected);
    matches!(before, [.., (_, first), (_, Token::Other), (_, last)] if is(first, "pub") && is(last, "in"))
}

/// Reads one path that starts at `at`, continuing `prefix`; returns where to go on.
fn read(
    tokens: &[(usize, Token)],
    at: usize,
    prefix: &[String],
    found: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    let mut path = prefix.to_vec();
    let mut at = at;
    let line = tokens[at].0;
    loop {
        match tokens.get(at).map(|(_, token)| token) {
            Some(Token::Word(word)) => path.push(word.clone()),
            Some(Token::Star) => path.push("*".to_owned()),
            Some(Token::Open) => return read_group(tokens, at + 1, &path, found),
            _ => break,
        }
        at += 1;
        if !matches!(tokens.get(at), Some((_, Token::Colons))) {
            break;
        }
        at += 1;
    }
    found.push((line, path));
    at
}

/// Reads the members of `prefix::{...}`.
fn read_group(
    tokens: &[(usize, Token)],
    start: usize,
    prefix: &[String],
    found: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    let mut at = start;
    while let Some((_, token)) = tokens.get(at) {
        at = match token {
            Token::Close => return at + 1,
            Token::Word(word) if word == "as" => at + 2,
            Token::Word(_) | Token::Star | Token::Open => read(tokens, at, prefix, found),
            _ => at + 1,
        };
    }
    at
}

/// The module that a file is, as a path from the crate.
fn module_of(path: &str) -> Vec<String> {
    let inside = path.trim_start_matches("src/").trim_end_matches(".rs");
    let mut module = vec!["crate".to_owned()];
    module.extend(inside.split('/').map(str::to_owned));
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        module.pop();
    }
    module
}

/// Turns a path that starts with `self` or `super` into one that starts with `crate`.
fn resolve(module: &[String], is_test: bool, mut path: Vec<String>) -> Vec<String> {
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let is_relative = path.len() > 1 && ["self", "super"].contains(&path[0].as_str());
    if !is_relative {
        return path;
    }
    let mut full = module.to_vec();
    if is_test {
        full.push("tests".to_owned());
    }
    for segment in path {
        match segment.as_str() {
            "self" => {}
            "super" => drop(full.pop()),
            _ => full.push(segment),
        }
    }
    full
}

#[cfg(test)]
fn texts(path: &str, text: &str) -> Vec<String> {
    named(&Source::new(path, text)).iter().map(|named| named.segments.join("::")).collect()
}

#[test]
fn a_group_is_opened() {
    let text = "use a::{\n    b::{self, c},\n    d as e,\n    f::*,\n};\n";
    assert_eq!(texts("src/x.rs", text), ["use", "a::b", "a::b::c", "a::d", "a::f::*"]);
}

#[test]
fn a_relative_path_is_resolved() {
    assert_eq!(texts("src/engine/store/row.rs", "super::key"), ["crate::engine::store::key"]);
    assert_eq!(texts("src/engine/store/mod.rs", "super::rules::lock"), ["crate::engine::rules::lock"]);
    assert_eq!(texts("src/engine/store.rs", "self::row"), ["crate::engine::store::row"]);
    let tests = "#[cfg(test)]\nmod tests {\n    super::key();\n}\n";
    assert!(texts("src/engine/row.rs", tests).contains(&"crate::engine::row::key".to_owned()));
}

#[test]
fn visibility_is_not_a_path() {
    assert_eq!(texts("src/x.rs", "pub(crate) fn f"), ["pub", "crate", "fn", "f"]);
    assert_eq!(texts("src/x.rs", "pub(in crate::engine) fn f"), ["pub", "in", "fn", "f"]);
}
