//! Demonstrations on data that the user already has.
#![allow(
    dead_code,
    unused_imports,
    reason = "the runner of `seriatim demo git` will use this room; remove this line together with its arrival"
)]

pub(crate) mod git;
