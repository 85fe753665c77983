//! What this endpoint promises.

mod full;
mod house;
mod messages;
mod metered;
mod policies;
mod properties;
mod queues;
mod signed;
