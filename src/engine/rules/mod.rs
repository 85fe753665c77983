//! What is allowed to happen. Pure: no clock, no chance, no disk; `now` and tokens come in, changes and effects
//! come out.

pub(crate) mod change;
pub(crate) mod record;
pub(crate) mod records;
