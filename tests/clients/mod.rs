//! The promises of the clients for other languages, kept towards the daemon of this build.

mod python;
mod typescript;
