//! The handlers with real children and a real receiver.

mod ear;
mod ending;
mod environment;
mod exec;
#[cfg(target_os = "linux")]
mod fence;
mod forward;
mod order;
mod persistent;
mod receiver;
mod stage;
mod webhook;
