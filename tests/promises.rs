//! The promises, each proved by a test of its name.

mod promises {
    pub(crate) mod house;

    mod audit;
    mod broken;
    mod broken_answers;
    mod check;
    mod corners;
    mod files;
    mod guarantees;
    mod hidden;
    mod once;
    mod ordering;
    mod processor;
    mod processor_edges;
    mod processor_many;
    mod recovery;
    mod restart;
    #[path = "../fuzz/rich.rs"]
    pub(crate) mod rich;
    mod room;
    mod together;
    mod verify;
}
