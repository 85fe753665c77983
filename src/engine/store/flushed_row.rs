//! A row of a table of the file, as it is read.

use serde::de::DeserializeOwned;

use crate::engine::store::checksum::damaged;
use crate::engine::store::checksum::verify_checksum;
use crate::engine::store::codec;
use crate::engine::store::definition::RawTableDefinition;
use crate::error::Fault;

/// What a table says of a key.
#[derive(Clone, Copy)]
pub(crate) enum FlushedRow<'r> {
    /// A row of the file, with its own checksum.
    Checksummed(&'r [u8]),
    /// A row of a block whose checksum fits.
    InBlock(&'r [u8]),
}

impl FlushedRow<'_> {
    /// The row's record.
    ///
    /// # Errors
    /// [`Fault::Damaged`] when it is not what was written.
    pub(crate) fn record<V: DeserializeOwned>(
        &self,
        table: &RawTableDefinition,
        key: &[u8],
    ) -> Result<V, Fault> {
        match self {
            FlushedRow::Checksummed(checksummed) => record(table, key, checksummed),
            FlushedRow::InBlock(payload) => decoded(table, payload),
        }
    }

    /// How long it is.
    pub(crate) fn len(&self) -> usize {
        match self {
            FlushedRow::Checksummed(bytes) | FlushedRow::InBlock(bytes) => bytes.len(),
        }
    }
}

/// A checksummed row's record.
pub(crate) fn record<V: DeserializeOwned>(
    table: &RawTableDefinition,
    key: &[u8],
    checksummed: &[u8],
) -> Result<V, Fault> {
    decoded(table, verify_checksum(table, key, checksummed)?)
}

/// The record of a row whose checksum fits.
pub(crate) fn decoded<V: DeserializeOwned>(table: &RawTableDefinition, payload: &[u8]) -> Result<V, Fault> {
    codec::decode(payload).ok_or_else(|| damaged(table, "a record makes no sense"))
}
