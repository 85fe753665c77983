//! A control: a harness that finds nothing in redb 4.1.0 is blind.
//!
//! That version could lose acknowledged commits when the power failed again while it recovered from a first cut; the
//! changelog of redb 4.2.0 says so. Here the disk and the cuts of the crash tests are used on it as they are.

#![cfg(test)]

mod engine;
mod ledger;
#[path = "../../../../src/mutex.rs"]
mod mutex;
mod twice;
