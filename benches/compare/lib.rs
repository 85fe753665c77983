//! A package of benchmarks alone: SQLite and criterion are compiled for them only, and not by `cargo test`.
