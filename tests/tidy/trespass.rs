//! Finds who names what its room may not: the table in `rooms.rs` is kept.

use crate::paths;
use crate::paths::Named;
use crate::rooms::Binds;
use crate::rooms::Row;
#[cfg(test)]
use crate::rooms::TABLE;
use crate::source::Source;

/// Every place where a source names what its room may not name.
pub(crate) fn trespasses(sources: &[Source], table: &[Row]) -> Vec<String> {
    let mut violations = Vec::new();
    for source in sources {
        let rows: Vec<&Row> = table.iter().filter(|row| row.holds(&source.path)).collect();
        for named in paths::named(source) {
            let broken = rows.iter().filter(|row| row.forbids(&named));
            violations.extend(broken.map(|row| {
                let (path, line) = (&source.path, named.line);
                format!("{path}:{line}: names `{}`: {}", named.segments.join("::"), row.because)
            }));
        }
    }
    violations
}

impl Row {
    fn holds(&self, path: &str) -> bool {
        let is_in = |rooms: &[&str]| rooms.iter().any(|room| is_inside(path, room));
        is_in(self.room) && !is_in(self.outside)
    }

    fn forbids(&self, named: &Named) -> bool {
        if named.is_test && self.binds == Binds::CodeOnly {
            return false;
        }
        let is_allowed = self.but_may.iter().copied().flatten().any(|path| is_below(&named.segments, path));
        !is_allowed && self.may_not_name.iter().any(|pattern| is_named(&named.segments, pattern))
    }
}

fn is_inside(path: &str, room: &str) -> bool {
    let rest = path.strip_prefix(room);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || rest == ".rs")
}

fn is_named(segments: &[String], pattern: &str) -> bool {
    match pattern {
        "crate" => segments.len() > 1 && segments[0] == "crate",
        word if !word.contains("::") => segments.iter().any(|segment| segment == word),
        path => is_below(segments, path) || is_glob_over(segments, path),
    }
}

fn is_below(segments: &[String], path: &str) -> bool {
    segments.starts_with(&paths::segments(path))
}

/// Whether the segments are a glob that brings the path into scope.
fn is_glob_over(segments: &[String], path: &str) -> bool {
    let above = segments.strip_suffix(&["*".to_owned()]);
    above.is_some_and(|above| !above.is_empty() && paths::segments(path).starts_with(above))
}

#[cfg(test)]
fn found(path: &str, text: &str) -> Vec<String> {
    trespasses(&[Source::new(path, text)], TABLE)
}

#[test]
fn every_row_of_the_table_can_fail() {
    for row in TABLE {
        let room = row.room[0];
        let path = if room.ends_with(".rs") { room.to_owned() } else { format!("{room}/planted.rs") };
        for pattern in row.may_not_name {
            let planted = [Source::new(&path, &format!("use {pattern}::Planted;\n"))];
            let violations = trespasses(&planted, std::slice::from_ref(row));
            assert_eq!(violations.len(), 1, "{pattern} in {path}: {}", row.because);
            assert!(
                violations[0].starts_with(&format!("{path}:1: ")) && violations[0].ends_with(row.because)
            );
        }
        for allowed in row.but_may.iter().copied().flatten() {
            let honest = [Source::new(&path, &format!("use {allowed}::Honest;\n"))];
            assert!(trespasses(&honest, std::slice::from_ref(row)).is_empty(), "{allowed} in {path}");
        }
    }
}

#[test]
fn a_trespass_is_found_however_it_is_written() {
    for text in [
        "use crate::engine::{client, store::Store};",
        "use super::store;",
        "use super::{rules as r, store as s};",
        "fn f() -> crate::engine::store::Store {",
        "use super::*;",
        "use std::{\n    fs::File,\n    mem,\n};",
        "use std::time;\nfn now() {\n    time::Instant::now();\n}",
        "async fn f() {",
        "let map: HashMap<u8, u8> = x;",
    ] {
        assert!(!found("src/engine/rules/mod.rs", text).is_empty(), "{text}");
    }
}

#[test]
fn a_word_in_a_comment_or_a_string_is_not_a_trespass() {
    let text =
        "//! Pure: no redb, no tokio.\nconst A: &str = \"tokio::spawn\"; // std::fs\npub(crate) fn f() {}\n";
    assert_eq!(found("src/engine/rules/lock.rs", text), Vec::<String>::new());
}

#[test]
fn a_test_may_use_a_hash_map_but_not_the_store() {
    let module = |line: &str| format!("#[cfg(test)]\nmod tests {{\n    {line}\n}}\n");
    assert!(found("src/engine/rules/lock.rs", &module("use std::collections::HashMap;")).is_empty());
    assert!(!found("src/engine/rules/lock.rs", &module("use crate::engine::store::Store;")).is_empty());
}

#[test]
fn a_room_ends_at_its_walls() {
    assert!(is_inside("src/engine/rules.rs", "src/engine/rules"));
    assert!(is_inside("src/engine/rules/lock.rs", "src/engine/rules"));
    assert!(!is_inside("src/engine/rules_of_thumb.rs", "src/engine/rules"));
    assert!(found("src/engine/writer.rs", "use crate::engine::store::Store;").is_empty());
    assert!(!found("src/remote.rs", "use crate::engine::store::Store;").is_empty());
}
