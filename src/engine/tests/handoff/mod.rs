//! The hand-over of requests, commits and answers under every schedule: the same `inbox.rs`, `letter.rs` and `commits.rs`, compiled a
//! second time among threads that are scheduled by a test, before a disk that fails when it is told to.

mod askers;
#[expect(clippy::duplicate_mod, reason = "the code under test, among other threads")]
#[path = "../../commits.rs"]
mod commits;
mod disk;
mod hot_loop;
#[expect(clippy::duplicate_mod, reason = "the code under test, among other threads")]
#[expect(dead_code, reason = "nobody sleeps here")]
#[path = "../../inbox.rs"]
mod inbox;
#[expect(clippy::duplicate_mod, reason = "the code under test, among other threads")]
#[path = "../../left_answers.rs"]
mod left_answers;
#[expect(clippy::duplicate_mod, reason = "the code under test, among other threads")]
#[expect(dead_code, reason = "nobody waits for work here")]
#[path = "../../letter.rs"]
mod letter;
mod schedules;
mod threads;
mod verbs;
