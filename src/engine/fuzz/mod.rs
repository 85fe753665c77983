//! What the fuzzer calls with bytes it makes up, and the tests with those it has found: nothing may panic, and what is
//! understood is understood again.
#![cfg_attr(not(fuzzing), expect(unreachable_pub, reason = "only the fuzzer reaches it from outside"))]

mod filter;
mod journal;
mod record;
#[cfg(test)]
mod replay;

pub use crate::engine::fuzz::filter::filter;
pub use crate::engine::fuzz::journal::journal;
pub use crate::engine::fuzz::record::record;
