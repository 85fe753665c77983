//! The hand-over of commits under every schedule: the same `commits.rs`, compiled a second time among threads that are
//! scheduled by a test, before a disk that fails when it is told to.

#[expect(clippy::duplicate_mod, reason = "the code under test, among other threads")]
#[path = "../commits.rs"]
mod commits;
mod house;
mod schedules;
mod threads;
