//! What types are called: each has a name of its own, and none is named by what happened to it.

use crate::source::Source;
use std::collections::BTreeMap;

/// Where types keep the names that they had: records as an older version wrote them, and naive twins of rules.
const EXEMPT: &[&str] = &["/format3/", "/naive.rs", "/fuzz"];

/// Words at the end of a name that are no noun and look like none.
const NO_NOUNS: &[&str] = &[
    "Ahead", "Alone", "Apart", "Begun", "Done", "Found", "Given", "Gone", "Heard", "Held", "Kept", "Known",
    "Left", "Lost", "Made", "Over", "Said", "Seen", "Sent", "Spent", "Taken", "Then", "Told", "Until",
    "Written",
];

/// Nouns that end as participles do.
const NOUNS: &[&str] = &["Feed", "Need", "Seed", "Speed"];

/// Names that two types of the crate have.
pub(crate) fn reused(sources: &[Source]) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (place, name) in types(sources) {
        places.entry(name).or_default().push(place);
    }
    let twice = places.into_iter().filter(|(_, places)| places.len() > 1);
    twice
        .map(|(name, places)| format!("{name} is defined in {}: say what each is", places.join(" and ")))
        .collect()
}

/// Types that are named by a participle or an adverb.
pub(crate) fn no_nouns(sources: &[Source]) -> Vec<String> {
    let odd = types(sources).filter(|(_, name)| is_no_noun(last_word(name)));
    odd.map(|(place, name)| format!("{place}: {name} is no noun: say what the thing is")).collect()
}

fn is_no_noun(word: &str) -> bool {
    NO_NOUNS.contains(&word) || (word.ends_with("ed") && !NOUNS.contains(&word))
}

/// `Line` of `JobLine`.
fn last_word(name: &str) -> &str {
    name.rfind(|letter: char| letter.is_ascii_uppercase()).map_or(name, |at| &name[at..])
}

/// Every type that a source defines outside of tests, with its place.
fn types(sources: &[Source]) -> impl Iterator<Item = (String, String)> {
    let ours = sources.iter().filter(|source| !EXEMPT.iter().any(|part| source.path.contains(part)));
    ours.filter(|source| !source.path.ends_with("tests.rs")).flat_map(|source| {
        let lines =
            source.code.iter().zip(&source.is_test).enumerate().filter(|(_, (_, is_test))| !**is_test);
        lines.filter_map(|(number, (line, _))| {
            Some((format!("{}:{}", source.path, number + 1), defined(line)?.to_owned()))
        })
    })
}

/// The type that a line defines. An associated type is set in, and is none.
fn defined(line: &str) -> Option<&str> {
    let is_set_in = line.starts_with(' ');
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
    match words.next()? {
        "type" if is_set_in => None,
        "struct" | "enum" | "trait" | "type" | "union" => {
            let name = words.next()?;
            let name = &name[..name.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(name.len())];
            // A macro has a variable there.
            (!name.is_empty()).then_some(name)
        }
        _ => None,
    }
}

#[test]
fn a_name_that_is_used_twice_is_found() {
    let sources =
        [Source::new("src/a.rs", "pub(crate) struct Place;\n"), Source::new("src/b.rs", "enum Place {\n}\n")];
    assert_eq!(reused(&sources), ["Place is defined in src/a.rs:1 and src/b.rs:1: say what each is"]);
    let associated =
        [Source::new("src/a.rs", "struct Item;\nimpl Iterator for A {\n    type Item = u8;\n}\n")];
    assert!(reused(&associated).is_empty());
}

#[test]
fn a_participle_is_found() {
    let sources = [Source::new("src/a.rs", "struct Told<'a>(&'a str);\nstruct Feed;\nstruct PacedStream;\n")];
    assert_eq!(no_nouns(&sources), ["src/a.rs:1: Told is no noun: say what the thing is"]);
}
