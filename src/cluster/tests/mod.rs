//! A cluster on real NATS servers. Without `nats-server` nothing is tried, except where `CI` is set.

mod access;
mod chaos;
mod conformance;
mod nats;
mod process;
mod router;
mod snapshots;
mod takeover;
