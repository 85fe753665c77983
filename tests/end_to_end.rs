//! The program from outside: its command line, daemons and clusters in processes of their own, the page in a browser, clients
//! and SDKs of other languages, packages, and what the documents say. One program, so that what waits in one room keeps the
//! others waiting less.

mod cli;
mod clients;
#[cfg(feature = "cluster")]
mod cluster;
mod daemon;
mod fixture;
mod packages;
mod page;
mod sdk;
mod snippets;
