//! Demonstrations on data that the user already has.

pub(crate) mod git;
pub(crate) mod replay;
