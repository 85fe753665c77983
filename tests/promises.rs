//! The promises, each proved by a test of its name.

mod promises {
    pub(crate) mod house;

    mod broken;
    mod broken_answers;
    mod check;
    mod corners;
    mod files;
    mod guarantees;
    mod ordering;
    mod processor;
    #[path = "../fuzz/rich.rs"]
    pub(crate) mod rich;
    mod together;
    mod verify;
}
