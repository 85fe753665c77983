//! Messages of one workflow, one at a time, in order, even when they arrive shuffled, fail, or the process dies.

pub mod clock;
mod engine;
pub mod error;
pub mod limits;
mod message;
mod queue;
mod token;

pub use crate::clock::*;
pub use crate::engine::rules::record::*;
pub use crate::error::*;
pub use crate::message::*;
pub use crate::queue::*;
pub use crate::token::*;
