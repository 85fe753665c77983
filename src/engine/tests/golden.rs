//! The same batches give the same state, and the bytes of commands and changes are what they were.

use crate::clock::Timestamp;
use crate::engine::rules::Rules;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::samples;
use crate::engine::rules::verbs::Command;
use crate::engine::store::Store;
use crate::engine::store::StoreOptions;

/// Applies commands to a new store, and returns the hashes of the batches and of all rows.
fn replay(commands: &[Command]) -> (u64, u64) {
    let mut store = Store::in_memory(StoreOptions::default()).unwrap();
    let mut rules = Rules::default();
    for (instant, command) in commands.iter().enumerate() {
        let now = Timestamp::from_millis(1_000_000 + 500 * instant as u64);
        let applied = store.turn(|turn| {
            rules.apply(ClockInstants::same(now), command.clone(), turn)?;
            turn.stamp(now);
            Ok(())
        });
        applied.unwrap();
    }
    (store.place().1, store.content_hash().unwrap())
}

#[test]
fn the_same_batches_give_the_same_state() {
    let commands = samples::story();
    assert_eq!(replay(&commands), replay(&commands));
    let (batches, state) = replay(&commands[..commands.len() - 1]);
    assert_ne!((batches, state), replay(&commands), "another history is another state");
}

#[test]
fn the_bytes_of_commands_and_changes_are_what_they_were() {
    let mut golden = String::new();
    for (name, bytes) in samples::encoded() {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        golden.push_str(&format!("{name} {hex}\n"));
    }
    if std::env::var_os("SERIATIM_REWRITE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/engine/testdata/golden.txt");
        std::fs::write(path, &golden).unwrap();
        return;
    }
    let recorded = include_str!("../testdata/golden.txt");
    for (now, before) in golden.lines().zip(recorded.lines()) {
        assert_eq!(now, before, "stored bytes have changed: raise the version and the format");
    }
    assert_eq!(golden.lines().count(), recorded.lines().count());
}
