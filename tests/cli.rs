//! The real binary, on real repositories.

mod cli {
    mod bench;
    mod check;
    mod demo_git;
    pub(crate) mod scratch;
    mod verify;
    mod workflows;
}
