//! A cluster end to end: daemons and NATS servers in processes of their own, as `seriatim dev --nodes` starts them.

mod demonstration;
mod fixture;
pub(crate) mod nats_program;
mod nodes;
mod notes;
mod postgres;
mod service_bus;
mod topics;
