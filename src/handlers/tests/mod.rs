//! The handlers with real children and a real receiver.

mod exec;
mod persistent;
mod stage;
