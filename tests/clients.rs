//! The promises of the clients for other languages, kept towards the daemon of this build.

#[path = "clients/python.rs"]
mod python;

#[path = "clients/typescript.rs"]
mod typescript;
