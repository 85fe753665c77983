//! The real binary: on real repositories and files, and on a daemon that is made up for each test.

mod asking;
mod bench;
mod check;
mod demo_git;
pub(crate) mod fake;
mod looking;
mod moving;
mod night;
mod operating;
mod reaching;
mod restore;
mod scheduled;
pub(crate) mod scratch;
mod sending;
mod tutorial;
mod verify;
mod workflows;
