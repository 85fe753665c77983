//! Messages of one workflow, one at a time, in order, even when they arrive shuffled, fail, or the process dies.

pub mod clock;
mod engine;
mod error;
pub mod limits;
mod message;
mod queue;
pub mod testing;
mod token;

pub use crate::clock::{Clock, SystemClock, Timestamp};
pub use crate::engine::*;
pub use crate::error::*;
pub use crate::message::*;
pub use crate::queue::*;
pub use crate::token::LockToken;
