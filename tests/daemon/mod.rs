//! The daemon end to end: the real binary, real children, a real receiver of webhooks, and SIGKILL.

mod breaking_way;
mod crash;
#[path = "../kill/disk.rs"]
#[allow(dead_code, reason = "these tests need no disk that fails")]
mod disk;
mod drain;
mod fixture;
mod full;
mod keys;
mod killed;
mod metrics;
mod orphan;
#[path = "../older/packed.rs"]
#[allow(dead_code, reason = "these tests make no file")]
mod packed;
mod postgres;
mod postgres_bodies;
pub(crate) mod postgres_server;
mod postgres_waits;
#[path = "../kill/reliability.rs"]
#[allow(dead_code, reason = "these tests have no seed")]
mod reliability;
mod reload;
mod restart;
#[cfg(feature = "otlp")]
mod spans;
mod storage;
mod watching;
mod webhook;
