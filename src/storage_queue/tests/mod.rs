//! What this endpoint promises.

mod fixture;
mod full;
mod messages;
mod metered;
mod policies;
mod properties;
mod queues;
mod signed;
