//! Rows that have changed, on their way into blocks: one behind the other in one piece of memory, because they are many and small.

/// A row that has changed: its key, and its payload unless it is deleted.
pub(crate) type BlockChange<'c> = (&'c [u8], Option<&'c [u8]>);

/// Rows that have changed, in the order of their keys.
#[derive(Default)]
pub(crate) struct BlockChanges {
    bytes: Vec<u8>,
    ends: Vec<ChangeEnds>,
}

/// Where the key and the payload of a row end. It begins where the one before ends.
struct ChangeEnds {
    key: usize,
    payload: Option<usize>,
}

impl BlockChanges {
    /// Adds a row behind those before; `put_key` and `put_payload` put bytes behind those that are there.
    pub(crate) fn add(
        &mut self,
        put_key: impl FnOnce(&mut Vec<u8>),
        put_payload: Option<impl FnOnce(&mut Vec<u8>)>,
    ) {
        put_key(&mut self.bytes);
        let key = self.bytes.len();
        let payload = put_payload.map(|put| {
            put(&mut self.bytes);
            self.bytes.len()
        });
        self.ends.push(ChangeEnds { key, payload });
    }

    /// About how many bytes they take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The rows.
    pub(crate) fn rows(&self) -> Vec<BlockChange<'_>> {
        let mut begin = 0;
        let row = |ChangeEnds { key, payload }: &ChangeEnds| {
            let row = (&self.bytes[begin..*key], payload.map(|end| &self.bytes[*key..end]));
            begin = payload.unwrap_or(*key);
            row
        };
        self.ends.iter().map(row).collect()
    }
}
