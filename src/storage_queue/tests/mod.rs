//! What this endpoint promises.

mod house;
mod messages;
mod queues;
mod signed;
