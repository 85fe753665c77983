//! What this endpoint promises.
