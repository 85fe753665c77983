//! The arguments of the command line.

pub(crate) mod bench;
#[cfg(feature = "cluster")]
pub(crate) mod cluster;
pub(crate) mod daemon;
pub(crate) mod define;
pub(crate) mod demo;
pub(crate) mod exit_codes;
pub(crate) mod keep;
pub(crate) mod look;
pub(crate) mod operate;
pub(crate) mod send;
pub(crate) mod serve;
pub(crate) mod take;
pub(crate) mod target;
pub(crate) mod verb;
