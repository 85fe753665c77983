//! Pages of listings.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::limits;

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

/// How many entries a page has.
pub(crate) fn page_limit(asked: Option<usize>) -> usize {
    asked.unwrap_or(LIMIT_DEFAULT).clamp(1, limits::PAGE_MAX)
}
