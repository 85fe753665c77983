//! Circles of files that import each other: none but those that are one thing in several files.

use crate::paths;
use crate::source::Source;
use std::collections::BTreeMap;
use std::collections::BTreeSet;

/// A file of each circle that may be, how many files that has at most, and why it is one.
pub(crate) const CIRCLES: &[(&str, usize, &str)] = &[
    ("src/amqp/array.rs", 2, "an array is a value, and holds values"),
    ("src/bench/contender.rs", 2, "a contender, and how one without a processor is drained"),
    ("src/engine/rules/command_samples.rs", 2, "samples of commands, and of what they hold"),
    (
        "src/engine/rules/verbs.rs",
        4,
        "verbs, what each is, and the command, reply and transaction of any of them",
    ),
    ("src/limits.rs", 3, "limits that are made of others"),
    ("src/processor/pool.rs", 3, "a pool, what waits in it, and who settles for it"),
];

/// Circles that are not in the table, or have grown, and rows of the table without a circle.
pub(crate) fn unknown_circles(sources: &[Source], table: &[(&str, usize, &str)]) -> Vec<String> {
    let mut violations = Vec::new();
    let circles = circles(sources);
    let gone = table.iter().filter(|(file, ..)| !circles.iter().any(|circle| circle.contains(*file)));
    violations
        .extend(gone.map(|(file, ..)| format!("{file} is in no circle any more: take it out of the table")));
    for circle in circles {
        let known = table.iter().find(|(file, ..)| circle.contains(*file));
        match known {
            Some((file, most, _)) if circle.len() > *most => violations
                .push(format!("the circle of {file} has {} files, at most {most}: {circle:?}", circle.len())),
            Some(_) => {}
            None => violations.push(format!("files import each other in a circle: {circle:?}")),
        }
    }
    violations
}

/// Sets of two files and more of which each leads to each other. Declaring files only name what others hold.
fn circles(sources: &[Source]) -> Vec<BTreeSet<&str>> {
    let files: BTreeMap<Vec<String>, &str> = sources
        .iter()
        .filter(|source| !source.path.ends_with("mod.rs") && source.path != "src/lib.rs" && !is_test(source))
        .map(|source| (module(&source.path), source.path.as_str()))
        .collect();
    let mut imports: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in sources.iter().filter(|source| files.contains_key(&module(&source.path))) {
        let named = paths::named(source).into_iter().filter(|named| !named.is_test);
        let found = named.filter_map(|named| file_of(&files, &named.segments));
        imports.insert(&source.path, found.filter(|file| *file != source.path).collect());
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|file| (*file, reachable(&imports, file))).collect();
    let mut found: Vec<BTreeSet<&str>> = Vec::new();
    for (file, there) in &reached {
        let circle: BTreeSet<&str> =
            there.iter().copied().filter(|other| reached[other].contains(file)).collect();
        if circle.len() > 1 && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

fn is_test(source: &Source) -> bool {
    source.path.contains("/tests/") || source.path.ends_with("tests.rs")
}

/// `src/engine/rules/line.rs` as `crate`, `engine`, `rules`, `line`.
fn module(path: &str) -> Vec<String> {
    let inner = path.trim_start_matches("src/").trim_end_matches(".rs");
    std::iter::once("crate").chain(inner.split('/')).map(str::to_owned).collect()
}

/// The file with the longest name that the path begins with.
fn file_of<'a>(files: &BTreeMap<Vec<String>, &'a str>, segments: &[String]) -> Option<&'a str> {
    (2..=segments.len()).rev().find_map(|length| files.get(&segments[..length]).copied())
}

fn reachable<'a>(imports: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for next in imports.get(file).into_iter().flatten() {
            if reached.insert(*next) {
                open.push(next);
            }
        }
    }
    reached
}

#[test]
fn a_circle_is_found_and_one_in_the_table_may_not_grow() {
    let source = |path: &str, text: &str| Source::new(path, text);
    let sources = [
        source("src/a.rs", "use crate::b::B;\n"),
        source("src/b.rs", "use crate::c::C;\n"),
        source("src/c.rs", "use crate::a::A;\n"),
        source("src/d.rs", "use crate::a::A;\n"),
    ];
    assert_eq!(unknown_circles(&sources, &[]).len(), 1);
    assert_eq!(unknown_circles(&sources, &[("src/b.rs", 2, "")]).len(), 1);
    assert!(unknown_circles(&sources, &[("src/b.rs", 3, "")]).is_empty());
    assert!(unknown_circles(&sources[1..], &[]).is_empty());
    assert_eq!(unknown_circles(&sources[1..], &[("src/b.rs", 3, "")]).len(), 1);
}
