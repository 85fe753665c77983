//! Who may name whom: one table, read from the bottom of the house to its roof.
//!
//! To add a room, add a row: where it is, what it may not name, what of that it may name after all, and the
//! sentence that is printed to whoever breaks it. A room that does not exist yet breaks nothing.

use crate::paths;
use crate::paths::Named;
use crate::source::Source;

/// A rule about the rooms of the crate.
pub(crate) struct Row {
    /// Folders or files; `src/engine/rules` is the folder and also `src/engine/rules.rs`.
    room: &'static [&'static str],
    /// Parts of the room to which the rule does not apply.
    outside: &'static [&'static str],
    /// Whether unit tests inside the room are bound as well.
    binds: Binds,
    /// A path means itself and everything below it; one word means that word in any path, `HashMap` that in
    /// `collections::HashMap`. `crate` alone means any path of this crate.
    may_not_name: &'static [&'static str],
    /// Paths below the forbidden ones that are allowed.
    but_may: &'static [&'static [&'static str]],
    /// Printed on failure.
    because: &'static str,
}

#[derive(PartialEq)]
enum Binds {
    CodeAndTests,
    CodeOnly,
}

/// The words of the house: they are below everything and may only name each other.
const WORDS: &[&str] = &[
    "crate::actor",
    "crate::header",
    "crate::id",
    "crate::message",
    "crate::token",
    "crate::queue",
    "crate::rate",
    "crate::clock",
    "crate::limits",
    "crate::lookup",
    "crate::error",
    "crate::filter",
    "crate::topic",
];

/// What the rooms around the daemon stand on, beside the words.
const DAEMON_WORDS: &[&str] = &[
    "crate::engine",
    "crate::processor",
    "crate::api",
    "crate::schedule",
    "crate::intake",
    "crate::definition",
];

/// The part of the rules that says what is stored; the store knows these words and no verb.
const STORED: &[&str] = &[
    "crate::engine::rules::audit",
    "crate::engine::rules::change",
    "crate::engine::rules::cursor",
    "crate::engine::rules::due::Due",
    "crate::engine::rules::history",
    "crate::engine::rules::holds",
    "crate::engine::rules::output::Output",
    "crate::engine::rules::receipt::Receipt",
    "crate::engine::rules::record",
    "crate::engine::rules::records",
    "crate::engine::rules::topics::TopicRecord",
];

pub(crate) const TABLE: &[Row] = &[
    Row {
        room: &[
            "src/actor.rs",
            "src/header.rs",
            "src/id.rs",
            "src/message.rs",
            "src/token.rs",
            "src/queue.rs",
            "src/rate.rs",
            "src/clock.rs",
            "src/limits",
            "src/lookup.rs",
            "src/error",
            "src/filter",
            "src/topic.rs",
        ],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["crate"],
        but_may: &[WORDS],
        because: "the words are below everything: they name only each other, each at its own module",
    },
    Row {
        room: &["src/engine/rules"],
        outside: &[],
        binds: Binds::CodeAndTests,
        may_not_name: &["crate::engine", "redb", "tokio", "tracing", "getrandom"],
        but_may: &[&["crate::engine::rules"]],
        because: "the rules are pure: they say what is allowed, and know no store, no runtime, no log, no chance",
    },
    Row {
        room: &["src/engine/rules"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["Instant", "SystemTime", "SystemClock"],
        but_may: &[],
        because: "the rules have no clock: `now` arrives in the command, so that a replay gives the same state",
    },
    Row {
        room: &["src/engine/rules"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &[
            "async",
            "await",
            "std::fs",
            "std::io",
            "std::net",
            "std::thread",
            "std::process",
            "std::env",
            "println",
            "eprintln",
            "print",
            "eprint",
        ],
        but_may: &[],
        because: "the rules do nothing: they return changes and effects, and the writer carries them out",
    },
    Row {
        room: &["src/engine/rules"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["HashMap", "HashSet", "hash_map", "hash_set", "RandomState"],
        but_may: &[],
        because: "the order of a hash map differs from run to run, and the rules must not: use BTreeMap or Vec",
    },
    Row {
        room: &["src/engine/store"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["crate::engine::rules"],
        but_may: &[STORED],
        because: "the store knows rows, no rule: of the rules it may name only audit, change, due, history, output, receipt, record and records",
    },
    Row {
        room: &["src/engine/store"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &[
            "crate::engine::writer",
            "crate::engine::inbox",
            "crate::engine::timers",
            "crate::engine::wakeups",
            "crate::engine::query",
            "crate::engine::client",
        ],
        but_may: &[],
        because: "imports point down: the store is called by the rooms around the writer, it calls none of them",
    },
    Row {
        room: &["src/engine/tests/crash"],
        outside: &[],
        binds: Binds::CodeAndTests,
        may_not_name: &["crate::engine::store"],
        but_may: &[&["crate::engine::store::Store", "crate::engine::store::StoreOptions"]],
        because: "the crash tests know the store by its face only, so that they hold for every layout",
    },
    Row {
        room: &["src/engine"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["crate"],
        but_may: &[WORDS, &["crate::engine"]],
        because: "imports point down: the engine knows the words and itself, nothing that stands on it",
    },
    Row {
        room: &["src"],
        outside: &["src/engine"],
        binds: Binds::CodeAndTests,
        may_not_name: &["crate::engine::rules", "crate::engine::store"],
        but_may: &[],
        because: "the engine's rooms are private: whoever is outside speaks to its client",
    },
    Row {
        room: &["src/processor"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["crate"],
        but_may: &[WORDS, &["crate::engine", "crate::processor"]],
        because: "siblings do not meet: the processor knows the words and the engine's face",
    },
    Row {
        room: &["src/testing"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["crate"],
        but_may: &[WORDS, &["crate::engine", "crate::processor", "crate::testing"]],
        because: "the test kit knows what it helps to test: the words, the engine's face and the processor",
    },
    Row {
        room: &["src/amqp"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &[
            "crate",
            "tokio",
            "std::net",
            "std::io",
            "std::thread",
            "HashMap",
            "HashSet",
            "tracing",
        ],
        but_may: &[&["crate::amqp", "crate::limits"]],
        because: "AMQP alone is pure: bytes in, events out; no socket, no clock, no queue, and no order of chance",
    },
    Row {
        room: &["src/api"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["crate"],
        but_may: &[WORDS, &["crate::api", "crate::engine", "crate::processor"]],
        because: "how things look to outsiders knows the words and the engine's face, nothing that uses it",
    },
    Row {
        room: &["src/schedule"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["crate", "tokio"],
        but_may: &[WORDS, &["crate::schedule"]],
        because: "schedules are pure: they compute instants, whoever sends at them asks",
    },
    Row {
        room: &["src/intake"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["crate"],
        but_may: &[WORDS, &["crate::engine", "crate::intake"]],
        because: "the intake knows messages and the engine's face; rules are given to it",
    },
    Row {
        room: &["src/definition"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["crate", "tokio"],
        but_may: &[
            WORDS,
            &["crate::api", "crate::schedule", "crate::intake", "crate::postgres", "crate::definition"],
        ],
        because: "a definition is what a file says: it starts nothing, and knows nobody who does",
    },
    Row {
        room: &["src/handlers"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["crate"],
        but_may: &[WORDS, DAEMON_WORDS, &["crate::handlers"]],
        because: "siblings do not meet: handlers know definitions, the intake and the processor, no server",
    },
    Row {
        room: &["src/inbound"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["crate"],
        but_may: &[WORDS, &["crate::inbound"]],
        because: "connections as they come in know bytes and time, and nothing of what is asked",
    },
    Row {
        room: &["src/sas"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["crate", "tokio"],
        but_may: &[WORDS, &["crate::sas"]],
        because: "signatures are judged by keys and an instant that is given: no engine, no socket, no clock",
    },
    Row {
        room: &["src/postgres"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["crate"],
        but_may: &[WORDS, &["crate::postgres"]],
        because: "a table is read here: who copies it, and into what, is nothing it knows",
    },
    Row {
        room: &["src/selector"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["crate", "tokio", "async", "await"],
        but_may: &[WORDS, &["crate::selector"]],
        because: "a selector is text and values: what a name means is told by who asks, so that every protocol can have it",
    },
    Row {
        room: &["src/server"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["crate"],
        but_may: &[WORDS, DAEMON_WORDS, &["crate::inbound", "crate::sas", "crate::server"]],
        because: "siblings do not meet: a server knows definitions, the intake and the engine's face, no handler",
    },
    Row {
        room: &["src/page"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["crate"],
        but_may: &[WORDS, &["crate::api", "crate::inbound", "crate::page", "crate::remote"]],
        because: "the page is a user of the HTTP API like any other: it knows what travels, no engine, no server's insides",
    },
    Row {
        room: &["src/service_bus"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["crate"],
        but_may: &[
            WORDS,
            DAEMON_WORDS,
            &["crate::amqp", "crate::inbound::accept", "crate::sas", "crate::selector", "crate::service_bus"],
        ],
        because: "siblings do not meet: the endpoint of Service Bus knows the engine's face and AMQP, no handler, no server",
    },
    Row {
        room: &["src/storage_queue"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["crate"],
        but_may: &[WORDS, DAEMON_WORDS, &["crate::inbound", "crate::sas", "crate::storage_queue"]],
        because: "siblings do not meet: storage queues know the intake and the engine's face, no server, no AMQP",
    },
    Row {
        room: &["src/remote"],
        outside: &[],
        binds: Binds::CodeOnly,
        may_not_name: &["crate"],
        but_may: &[WORDS, &["crate::api", "crate::remote"]],
        because: "a client of another process knows what travels, and nothing of this one",
    },
    Row {
        room: &["src"],
        outside: &["src/daemon"],
        binds: Binds::CodeAndTests,
        may_not_name: &["crate::daemon"],
        but_may: &[],
        because: "the daemon is the roof of the library: it composes the others, none of them knows it",
    },
    Row {
        room: &["src/demo"],
        outside: &[],
        binds: Binds::CodeAndTests,
        may_not_name: &["crate"],
        but_may: &[&["crate::demo"]],
        because: "the demonstration is a user like any other: it knows the public crate, `seriatim::`",
    },
    Row {
        room: &["src/bench"],
        outside: &[],
        binds: Binds::CodeAndTests,
        may_not_name: &["crate"],
        but_may: &[&["crate::bench"]],
        because: "what measures is a user like any other: it knows the public crate, `seriatim::`",
    },
    Row {
        room: &["src/main.rs", "src/cli"],
        outside: &[],
        binds: Binds::CodeAndTests,
        may_not_name: &["crate"],
        but_may: &[&["crate::bench", "crate::cli", "crate::demo"]],
        because: "the command is a user like any other: it knows the public crate, `seriatim::`",
    },
    Row {
        room: &["src"],
        outside: &["src/main.rs", "src/bench", "src/cli", "src/demo"],
        binds: Binds::CodeAndTests,
        may_not_name: &["crate::bench", "crate::cli", "crate::demo", "clap", "indicatif", "ratatui"],
        but_may: &[],
        because: "command line, demonstration and benchmarks belong to the binary; the library builds without them",
    },
    Row {
        room: &["src/lib.rs"],
        outside: &[],
        binds: Binds::CodeAndTests,
        may_not_name: &["bench", "cli", "demo"],
        but_may: &[],
        because: "command line, demonstration and benchmarks are declared by main.rs, not by the library",
    },
];

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
