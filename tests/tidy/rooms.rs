//! Who may name whom: one table, read from the lowest module to the highest.
//!
//! To add a room, add a row: where it is, what it may not name, what of that it may name after all, and the
//! sentence that is printed to whoever breaks it. A room that does not exist yet breaks nothing.

/// A rule about the rooms of the crate.
pub(crate) struct Row {
    /// Folders or files; `src/engine/rules` is the folder and also `src/engine/rules.rs`.
    pub(crate) room: &'static [&'static str],
    /// Parts of the room to which the rule does not apply.
    pub(crate) outside: &'static [&'static str],
    /// Whether unit tests inside the room are bound as well.
    pub(crate) binds: Binds,
    /// A path means itself and everything below it; one word means that word in any path, `HashMap` that in
    /// `collections::HashMap`. `crate` alone means any path of this crate.
    pub(crate) may_not_name: &'static [&'static str],
    /// Paths below the forbidden ones that are allowed.
    pub(crate) but_may: &'static [&'static [&'static str]],
    /// Printed on failure.
    pub(crate) because: &'static str,
}

#[derive(PartialEq)]
pub(crate) enum Binds {
    CodeAndTests,
    CodeOnly,
}

/// The vocabulary: its modules are below everything and may only name each other.
const WORDS: &[&str] = &[
    "crate::actor",
    "crate::header",
    "crate::id",
    "crate::message",
    "crate::mutex",
    "crate::token",
    "crate::queue",
    "crate::rate",
    "crate::clock",
    "crate::deadlines",
    "crate::limits",
    "crate::lookup",
    "crate::own_queues",
    "crate::seldom",
    "crate::shown",
    "crate::task",
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
    "crate::records",
    "crate::tls_connector",
    "crate::xml",
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
    "crate::engine::rules::topic_record",
    "crate::engine::rules::workflow_record",
];

/// What most rooms say: their code names no other room.
const CODE: Row = Row {
    room: &[],
    outside: &[],
    binds: Binds::CodeOnly,
    may_not_name: &["crate"],
    but_may: &[],
    because: "",
};

pub(crate) const TABLE: &[Row] = &[
    Row {
        room: &[
            "src/actor.rs",
            "src/header.rs",
            "src/id.rs",
            "src/message.rs",
            "src/mutex.rs",
            "src/token.rs",
            "src/queue.rs",
            "src/rate.rs",
            "src/clock.rs",
            "src/deadlines.rs",
            "src/limits",
            "src/lookup.rs",
            "src/own_queues.rs",
            "src/seldom.rs",
            "src/shown.rs",
            "src/task.rs",
            "src/error",
            "src/filter",
            "src/topic.rs",
        ],
        but_may: &[WORDS],
        because: "the words are below everything: they name only each other, each at its own module",
        ..CODE
    },
    Row {
        room: &["src/engine/rules"],
        binds: Binds::CodeAndTests,
        may_not_name: &["crate::engine", "crate::task", "redb", "tokio", "tracing", "getrandom"],
        but_may: &[&["crate::engine::rules"]],
        because: "the rules are pure: they say what is allowed, and know no store, no runtime, no log, no chance",
        ..CODE
    },
    Row {
        room: &["src/engine/rules"],
        may_not_name: &["Instant", "SystemTime", "SystemClock"],
        because: "the rules have no clock: `now` arrives in the command, so that a replay gives the same state",
        ..CODE
    },
    Row {
        room: &["src/engine/rules"],
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
        because: "the rules do nothing: they return changes and effects, and the writer carries them out",
        ..CODE
    },
    Row {
        room: &["src/engine/rules"],
        may_not_name: &["HashMap", "HashSet", "hash_map", "hash_set", "RandomState"],
        because: "the order of a hash map differs from run to run, and the rules must not: use BTreeMap or Vec",
        ..CODE
    },
    Row {
        room: &["src/engine/store"],
        may_not_name: &["crate::engine::rules"],
        but_may: &[STORED],
        because: "the store knows rows, no rule: of the rules it may name only audit, change, due, history, output, receipt, record, records, topic_record and workflow_record",
        ..CODE
    },
    Row {
        room: &["src/engine/store"],
        may_not_name: &[
            "crate::engine::writer",
            "crate::engine::inbox",
            "crate::engine::timers",
            "crate::engine::wakeups",
            "crate::engine::query",
            "crate::engine::client",
        ],
        because: "imports point down: the store is called by the rooms around the writer, it calls none of them",
        ..CODE
    },
    Row {
        room: &["src/engine/tests/crash"],
        binds: Binds::CodeAndTests,
        may_not_name: &["crate::engine::store"],
        but_may: &[&[
            "crate::engine::store::Job",
            "crate::engine::store::Store",
            "crate::engine::store::StoreOptions",
        ]],
        because: "the crash tests know the store by its face only, so that they hold for every layout",
        ..CODE
    },
    Row {
        room: &["src/engine"],
        but_may: &[WORDS, &["crate::engine"]],
        because: "imports point down: the engine knows the words and itself, nothing that stands on it",
        ..CODE
    },
    Row {
        room: &["src"],
        outside: &["src/engine"],
        binds: Binds::CodeAndTests,
        may_not_name: &["crate::engine::rules", "crate::engine::store"],
        because: "the engine's rooms are private: whoever is outside speaks to its client",
        ..CODE
    },
    Row {
        room: &["src/processor"],
        but_may: &[WORDS, &["crate::engine", "crate::processor"]],
        because: "siblings do not meet: the processor knows the words and the engine's face",
        ..CODE
    },
    Row {
        room: &["src/testing"],
        but_may: &[WORDS, &["crate::engine", "crate::processor", "crate::testing"]],
        because: "the test kit knows what it helps to test: the words, the engine's face and the processor",
        ..CODE
    },
    Row {
        room: &["src/amqp"],
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
        ..CODE
    },
    Row {
        room: &["src/api"],
        but_may: &[WORDS, &["crate::api", "crate::engine", "crate::processor"]],
        because: "how things look to outsiders knows the words and the engine's face, nothing that uses it",
        ..CODE
    },
    Row {
        room: &["src/schedule"],
        may_not_name: &["crate", "tokio"],
        but_may: &[WORDS, &["crate::schedule"]],
        because: "schedules are pure: they compute instants, whoever sends at them asks",
        ..CODE
    },
    Row {
        room: &["src/intake"],
        but_may: &[WORDS, &["crate::engine", "crate::intake"]],
        because: "the intake knows messages and the engine's face; rules are given to it",
        ..CODE
    },
    Row {
        room: &["src/definition"],
        may_not_name: &["crate", "tokio"],
        but_may: &[
            WORDS,
            &[
                "crate::api",
                "crate::schedule",
                "crate::intake",
                "crate::postgres",
                "crate::definition",
                "crate::tls_connector",
            ],
        ],
        because: "a definition is what a file says: it starts nothing, and knows nobody who does",
        ..CODE
    },
    Row {
        room: &["src/handlers"],
        but_may: &[WORDS, DAEMON_WORDS, &["crate::handlers"]],
        because: "siblings do not meet: handlers know definitions, the intake and the processor, no server",
        ..CODE
    },
    Row {
        room: &["src/xml.rs"],
        but_may: &[&["crate::xml", "crate::limits"]],
        because: "elements and their text are written here, and checked before they are read, whatever they mean",
        ..CODE
    },
    Row {
        room: &["src/records.rs"],
        but_may: &[WORDS, &["crate::engine", "crate::records"]],
        because: "a record is kept for an endpoint: what it says, only that endpoint knows",
        ..CODE
    },
    Row {
        room: &["src/inbound"],
        but_may: &[WORDS, &["crate::inbound"]],
        because: "connections as they come in know bytes and time, and nothing of what is asked",
        ..CODE
    },
    Row {
        room: &["src/sas"],
        may_not_name: &["crate", "tokio"],
        but_may: &[WORDS, &["crate::sas"]],
        because: "signatures are judged by keys and an instant that is given: no engine, no socket, no clock",
        ..CODE
    },
    Row {
        room: &["src/postgres"],
        but_may: &[WORDS, &["crate::postgres", "crate::tls_connector"]],
        because: "a table is read here: who copies it, and into what, is nothing it knows",
        ..CODE
    },
    Row {
        room: &["src/selector"],
        may_not_name: &["crate", "tokio", "async", "await"],
        but_may: &[WORDS, &["crate::selector"]],
        because: "a selector is text and values: what a name means is told by who asks, so that every protocol can have it",
        ..CODE
    },
    Row {
        room: &["src/server"],
        but_may: &[WORDS, DAEMON_WORDS, &["crate::inbound", "crate::sas", "crate::server"]],
        because: "siblings do not meet: a server knows definitions, the intake and the engine's face, no handler",
        ..CODE
    },
    Row {
        room: &["src/page"],
        but_may: &[WORDS, &["crate::api", "crate::inbound", "crate::page", "crate::remote"]],
        because: "the page is a user of the HTTP API like any other: it knows what travels, no engine, no server's insides",
        ..CODE
    },
    Row {
        room: &["src/service_bus"],
        but_may: &[
            WORDS,
            DAEMON_WORDS,
            &["crate::amqp", "crate::inbound", "crate::sas", "crate::selector", "crate::service_bus"],
        ],
        because: "siblings do not meet: the endpoint of Service Bus knows the engine's face, AMQP and how connections come in, no handler, no server",
        ..CODE
    },
    Row {
        room: &["src/storage_queue"],
        but_may: &[WORDS, DAEMON_WORDS, &["crate::inbound", "crate::sas", "crate::storage_queue"]],
        because: "siblings do not meet: storage queues know the intake and the engine's face, no server, no AMQP",
        ..CODE
    },
    Row {
        room: &["src/remote"],
        but_may: &[WORDS, &["crate::api", "crate::remote", "crate::tls_connector"]],
        because: "a client of another process knows what travels, and nothing of this one",
        ..CODE
    },
    Row {
        room: &["src/cluster"],
        but_may: &[WORDS, &["crate::cluster", "crate::engine"]],
        because: "a node of a cluster runs engines: it knows the engine's face and the seam of its log, no server, no handler",
        ..CODE
    },
    Row {
        room: &["src"],
        outside: &["src/cluster", "src/daemon", "src/lib.rs"],
        binds: Binds::CodeAndTests,
        may_not_name: &["crate::cluster"],
        because: "one engine does not know whether there are others: what stands before its file is a log, and only the daemon chooses",
        ..CODE
    },
    Row {
        room: &["src"],
        outside: &["src/cluster"],
        binds: Binds::CodeAndTests,
        may_not_name: &["async_nats"],
        because: "whoever is outside of the cluster does not know what keeps its order",
        ..CODE
    },
    Row {
        room: &["src"],
        outside: &["src/daemon"],
        binds: Binds::CodeAndTests,
        may_not_name: &["crate::daemon"],
        because: "the daemon is the roof of the library: it composes the others, none of them knows it",
        ..CODE
    },
    Row {
        room: &["src/demo"],
        binds: Binds::CodeAndTests,
        but_may: &[&["crate::demo"]],
        because: "the demonstration is a user like any other: it knows the public crate, `seriatim::`",
        ..CODE
    },
    Row {
        room: &["src/bench"],
        binds: Binds::CodeAndTests,
        but_may: &[&["crate::bench"]],
        because: "what measures is a user like any other: it knows the public crate, `seriatim::`",
        ..CODE
    },
    Row {
        room: &["src/main.rs", "src/cli"],
        binds: Binds::CodeAndTests,
        but_may: &[&["crate::bench", "crate::cli", "crate::demo"]],
        because: "the command is a user like any other: it knows the public crate, `seriatim::`",
        ..CODE
    },
    Row {
        room: &["src"],
        outside: &["src/main.rs", "src/bench", "src/cli", "src/demo"],
        binds: Binds::CodeAndTests,
        may_not_name: &["crate::bench", "crate::cli", "crate::demo", "clap", "indicatif", "ratatui"],
        because: "command line, demonstration and benchmarks belong to the binary; the library builds without them",
        ..CODE
    },
    Row {
        room: &["src"],
        outside: &["src/main.rs", "src/bench", "src/cli", "src/demo", "src/task.rs"],
        may_not_name: &["tokio::spawn", "tokio::task::spawn"],
        because: "a task is begun by `task::spawn`, which puts its future in a box: what a runtime makes of one is compiled for each kind of future",
        ..CODE
    },
    Row {
        room: &["src/lib.rs"],
        binds: Binds::CodeAndTests,
        may_not_name: &["bench", "cli", "demo"],
        because: "command line, demonstration and benchmarks are declared by main.rs, not by the library",
        ..CODE
    },
];
