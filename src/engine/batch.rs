//! The commands of one turn as bytes: what a log of them would hold, and what the hash of the batch is made of.
//!
//! A batch is a version byte, then for each command its instant and the command, encoded by postcard. Golden bytes in
//! `testdata/golden.txt` pin the encoding of every command and every change; new bytes need a new version.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::clock::Timestamp;
use crate::engine::rules::command::Command;
use crate::error::Fault;

/// The version of the encoding of commands and changes.
pub(crate) const VERSION: u8 = 1;

/// The commands of one turn, in the order in which they were applied.
pub(crate) struct Batch {
    bytes: Vec<u8>,
}

impl Default for Batch {
    fn default() -> Batch {
        Batch { bytes: vec![VERSION] }
    }
}

impl Batch {
    pub(crate) fn add(&mut self, now: Timestamp, command: &Command) -> Result<(), Fault> {
        let bytes = std::mem::take(&mut self.bytes);
        let encoded = postcard::to_extend(&(now, command), bytes);
        self.bytes = encoded.map_err(|error| Fault::Defect(format!("encode a command: {error}")))?;
        Ok(())
    }

    /// The hash of this batch behind the one before it.
    pub(crate) fn hash(&self, previous: u64) -> u64 {
        xxh3_64_with_seed(&self.bytes, previous)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::rules::Rules;
    use crate::engine::rules::samples;
    use crate::engine::store::Store;
    use crate::engine::store::StoreOptions;

    const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 1 << 20, strict: false, quick_repair: false };

    /// Applies commands to a new store, and returns the hashes of the batches and of all rows.
    fn replay(commands: &[Command]) -> (u64, u64) {
        let mut store = Store::in_memory(OPTIONS).unwrap();
        let mut rules = Rules::default();
        for (instant, command) in commands.iter().enumerate() {
            let now = Timestamp::from_millis(1_000_000 + 500 * instant as u64);
            let (position, previous) = store.batch();
            let applied = store.turn(|turn| {
                let mut batch = Batch::default();
                batch.add(now, command)?;
                rules.apply(now, command.clone(), turn)?;
                turn.stamp(position + 1, batch.hash(previous), now);
                Ok(())
            });
            applied.unwrap();
        }
        (store.batch().1, store.snapshot().unwrap().hash().unwrap())
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
        let recorded = include_str!("testdata/golden.txt");
        for (now, before) in golden.lines().zip(recorded.lines()) {
            assert_eq!(now, before, "stored bytes have changed: raise the version and the format");
        }
        assert_eq!(golden.lines().count(), recorded.lines().count());
    }
}
