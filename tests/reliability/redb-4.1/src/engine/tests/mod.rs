//! As the crash tests are found from the crate.

pub(crate) mod crash;
