//! A cluster on real NATS servers. Without `nats-server` nothing is tried, except where `CI` is set.

mod access;
mod asking;
mod chaos;
mod clocks;
mod conformance;
mod damage;
mod definitions;
mod disturbances;
mod full_disk;
mod moving;
mod nats;
#[path = "../../../tests/cluster/nats_program.rs"]
mod nats_program;
mod outbox;
mod process;
mod processing;
mod proxy;
mod router;
mod snapshot_attempts;
mod snapshots;
mod source_notes;
mod starting;
mod stuck;
mod takeover;
mod topics;
mod unconnected;
mod unheard;
mod wire;
