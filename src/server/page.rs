//! Pages of listings.

use crate::limits;
use crate::server::answer::HttpRefusal;

/// Entries of a page if nobody says how many.
const LIMIT_DEFAULT: usize = 100;

/// How many entries a page has; a page without any would lead nowhere.
pub(crate) fn page_limit(limit: Option<usize>) -> Result<usize, HttpRefusal> {
    match limit.unwrap_or(LIMIT_DEFAULT) {
        0 => Err(HttpRefusal::misuse("limit", "is zero, and a page has one entry at least")),
        limit => Ok(limit.min(limits::PAGE_MAX)),
    }
}
