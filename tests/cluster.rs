//! A cluster end to end: daemons and NATS servers in processes of their own, as `seriatim dev --nodes` starts them.
#![cfg(feature = "cluster")]

#[path = "cluster/fixture.rs"]
mod fixture;
#[path = "cluster/nats_program.rs"]
mod nats_program;
#[path = "cluster/nodes.rs"]
mod nodes;
