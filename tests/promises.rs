//! The promises, each proved by a test of its name.

#[cfg(feature = "head-room")]
#[path = "kill/disk.rs"]
#[allow(dead_code, reason = "these tests need no disk that fails")]
mod disk;
#[cfg(feature = "head-room")]
#[path = "kill/reliability.rs"]
#[allow(dead_code, reason = "these tests have no seed")]
mod reliability;

mod promises {
    pub(crate) mod fixture;

    mod audit;
    mod blame;
    mod bounds;
    mod broken;
    mod broken_answers;
    mod check;
    mod clocks;
    mod compact;
    mod corners;
    mod corners_later;
    mod cursors;
    mod dead_letters;
    mod edit;
    mod events;
    mod files;
    mod full;
    mod full_downstream;
    mod guarantees;
    #[cfg(feature = "head-room")]
    mod head_room;
    mod hidden;
    mod history;
    mod holders;
    mod holds;
    mod once;
    mod ordering;
    mod outputs;
    mod processor;
    mod processor_batches;
    mod processor_blocking;
    mod processor_edges;
    mod processor_many;
    mod rates;
    mod recovery;
    mod restart;
    #[path = "../fuzz/rich.rs"]
    pub(crate) mod rich;
    mod room;
    mod scheduled;
    mod send_order;
    mod settled_twice;
    mod standing;
    mod strangers;
    mod strays;
    mod together;
    mod topics;
    mod topics_once;
    mod verify;
}
