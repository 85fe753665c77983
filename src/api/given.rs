//! A JSON value that may be left out.

use serde::Deserialize;
use serde::Deserializer;
use serde_json::value::RawValue;

/// Reads a value that is given. `null` is one, too: an `Option` by itself reads it as if nothing were there.
pub(crate) fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}
