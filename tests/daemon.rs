//! The daemon end to end: the real binary, real children, a real receiver of webhooks, and SIGKILL.

#[path = "daemon/crash.rs"]
mod crash;
#[path = "daemon/house.rs"]
mod house;
#[path = "daemon/metrics.rs"]
mod metrics;
#[path = "daemon/reload.rs"]
mod reload;
#[path = "daemon/restart.rs"]
mod restart;
#[cfg(feature = "otlp")]
#[path = "daemon/spans.rs"]
mod spans;
#[path = "daemon/webhook.rs"]
mod webhook;
