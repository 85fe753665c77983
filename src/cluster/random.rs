//! Numbers by which owners and processes are told apart.

/// A number that no other owner has.
#[expect(
    clippy::disallowed_methods,
    reason = "an owner has to differ from every other, also from itself before"
)]
pub(crate) fn random() -> u64 {
    getrandom::u64().expect("the operating system has random numbers")
}
