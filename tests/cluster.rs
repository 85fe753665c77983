//! A cluster end to end: daemons and NATS servers in processes of their own, as `seriatim dev --nodes` starts them.
#![cfg(feature = "cluster")]

#[path = "cluster/demonstration.rs"]
mod demonstration;
#[path = "cluster/fixture.rs"]
mod fixture;
#[path = "sdk/kit.rs"]
#[allow(dead_code, reason = "one SDK is enough here, and its scenarios are played elsewhere")]
mod kit;
#[path = "cluster/nats_program.rs"]
mod nats_program;
#[path = "cluster/nodes.rs"]
mod nodes;
#[path = "cluster/postgres.rs"]
mod postgres;
#[path = "daemon/postgres_server.rs"]
#[allow(dead_code, reason = "the database is killed elsewhere")]
mod postgres_server;
#[path = "cli/scratch.rs"]
#[allow(dead_code, reason = "the demonstration without a cluster is played elsewhere")]
mod scratch;
#[path = "cluster/service_bus.rs"]
mod service_bus;
#[path = "cluster/topics.rs"]
mod topics;
