//! Pages of listings.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::limits;
use crate::server::answer::Refused;

/// Which part of a listing.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PageQuery {
    /// Where the page before ended; as answered there.
    pub(crate) after: Option<String>,
    /// How many entries at most: 100 if it is not given, 1,000 at most.
    pub(crate) limit: Option<usize>,
}

/// Entries of a page if nobody says how many.
const LIMIT_DEFAULT: usize = 100;

/// How many entries a page has; a page without any would lead nowhere.
pub(crate) fn page_limit(asked: Option<usize>) -> Result<usize, Refused> {
    match asked.unwrap_or(LIMIT_DEFAULT) {
        0 => Err(Refused::misuse("limit", "is zero, and a page has one entry at least")),
        asked => Ok(asked.min(limits::PAGE_MAX)),
    }
}
