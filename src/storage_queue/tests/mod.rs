//! What this endpoint promises.

mod house;
mod messages;
mod metered;
mod queues;
mod signed;
