//! The daemon end to end: the real binary, real children, a real receiver of webhooks, and SIGKILL.

#[path = "daemon/crash.rs"]
mod crash;
#[path = "fixture/daemon_process.rs"]
mod daemon_process;
#[path = "kill/disk.rs"]
#[allow(dead_code, reason = "these tests need no disk that fails")]
mod disk;
#[path = "daemon/drain.rs"]
mod drain;
#[path = "daemon/fixture.rs"]
mod fixture;
#[path = "daemon/full.rs"]
mod full;
#[path = "daemon/killed.rs"]
mod killed;
#[path = "daemon/metrics.rs"]
mod metrics;
#[path = "daemon/orphan.rs"]
mod orphan;
#[path = "daemon/postgres.rs"]
mod postgres;
#[path = "daemon/postgres_server.rs"]
mod postgres_server;
#[path = "kill/reliability.rs"]
#[allow(dead_code, reason = "these tests have no seed")]
mod reliability;
#[path = "daemon/reload.rs"]
mod reload;
#[path = "daemon/restart.rs"]
mod restart;
#[cfg(feature = "otlp")]
#[path = "daemon/spans.rs"]
mod spans;
#[path = "daemon/storage.rs"]
mod storage;
#[path = "daemon/watching.rs"]
mod watching;
#[path = "daemon/webhook.rs"]
mod webhook;
