//! Everything a store holds, for tests: the same content, however much of it is flushed, has the same hash.

use xxhash_rust::xxh3::Xxh3;

use crate::engine::store::base::Base;
use crate::engine::store::codec;
use crate::engine::store::store::Store;
use crate::error::Fault;

impl Store {
    /// The hash of every row, counter and queue.
    pub(crate) fn content_hash(&mut self) -> Result<u64, Fault> {
        let mut hasher = Xxh3::new();
        let base = Base::new(&self.database);
        let mut contents = Vec::new();
        self.memtables.each(&mut |memtable| contents.push(memtable.content(&base)));
        for content in contents {
            for (key, value) in content? {
                hasher.update(&(key.len() as u64).to_le_bytes());
                hasher.update(&key);
                hasher.update(&value);
            }
        }
        hasher.update(&codec::encode(&self.meta.numbers));
        for (queue, counters) in &self.meta.counters {
            hasher.update(&codec::encode(&(queue, counters)));
        }
        for record in self.meta.queues.values() {
            hasher.update(&codec::encode(&**record));
        }
        Ok(hasher.digest())
    }
}
