//! The handlers with real children and a real receiver.

mod blame;
mod drain;
mod ending;
mod environment;
mod exec;
#[cfg(target_os = "linux")]
mod fence;
mod forward;
mod gated;
mod named_pipe;
mod order;
mod persistent;
mod receiver;
mod stage;
mod webhook;
