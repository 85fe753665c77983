//! A cluster on real NATS servers. Without `nats-server` nothing is tried, except where `CI` is set.

mod access;
mod chaos;
mod conformance;
mod damage;
mod nats;
mod outbox;
mod process;
mod router;
mod snapshots;
mod takeover;
