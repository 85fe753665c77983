//! The promises one by one, each with its baselines beside it: a raw append, and an ordered queue on SQLite.
//!
//! `cargo bench -p seriatim-compare --bench promises`. Every message is checked for order and exclusivity here too. For the ratio of two
//! contenders see `--bench compare`: there they take turns, here they follow each other.

#[path = "../baseline/mod.rs"]
mod baseline;
#[allow(
    dead_code,
    unused_imports,
    reason = "it is shared with the binary, whose tests and verbs are not wanted here"
)]
#[path = "../../src/bench/mod.rs"]
mod bench;
mod requests;
mod workloads;

use criterion::Criterion;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    requests::send_is_on_disk(&mut criterion);
    requests::lone_round_trip(&mut criterion);
    workloads::all(&mut criterion);
    criterion.final_summary();
}
