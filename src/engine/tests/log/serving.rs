//! How a file that has followed a log, and serves, ends.

use std::sync::Arc;

use crate::clock::SystemClock;
use crate::engine::clocks::PassedTime;
use crate::engine::follower::Follower;
use crate::engine::follower::FollowerOptions;
use crate::engine::store::log::EachEntry;
use crate::engine::store::log::Entry;
use crate::engine::store::log::Log;
use crate::error::Fault;
use crate::error::OpenError;
use crate::queue::QueueOptions;

/// A log behind which a fault is found with the third entry.
struct Faulty(Fault);

impl Log for Faulty {
    fn append(&self, entry: Entry<'_>) -> Result<(), Fault> {
        if entry.position < 3 { Ok(()) } else { Err(self.0.clone()) }
    }

    fn read_from(&self, _position: u64, _each: &mut EachEntry<'_>) -> Result<(), Fault> {
        Ok(())
    }

    fn trim(&self, _through: u64) -> Result<(), Fault> {
        Ok(())
    }
}

/// What comes of serving when a fault ends that.
async fn served_until(fault: Fault) -> Result<(), OpenError> {
    let folder = tempfile::tempdir().unwrap();
    let (path, log) = (folder.path().join("faulty.redb"), Arc::new(Faulty(fault)));
    let (began, begins) = tokio::sync::oneshot::channel();
    let serve = move || {
        let follower = Follower::open(&path, FollowerOptions::shared_by(1), log)?;
        let began = |engine, _| assert!(began.send(engine).is_ok());
        follower.serve(1, 1, Arc::new(SystemClock::default()), PassedTime::default(), began)
    };
    let thread = std::thread::Builder::new().spawn(serve).unwrap();
    let client = begins.await.unwrap().client().clone();
    client.create_queue("a", QueueOptions::default()).await.unwrap();
    client.create_queue("b", QueueOptions::default()).await.err().expect("a fault was found");
    thread.join().unwrap()
}

#[tokio::test]
async fn who_serves_until_a_fault_is_told_which_so_that_the_partition_is_left_to_others() {
    let damaged = || Fault::Damaged { table: "messages", detail: "its checksum is wrong".to_owned() };
    let ended = served_until(damaged()).await;
    assert!(matches!(ended, Err(OpenError::Fault(Fault::Damaged { .. }))), "{ended:?}");
    let ended = served_until(Fault::Defect("an assertion".to_owned())).await;
    assert!(matches!(ended, Err(OpenError::Fault(Fault::Defect(_)))), "{ended:?}");
    let ended = served_until(Fault::Log("it takes nothing so large".to_owned())).await;
    assert!(ended.is_ok(), "to follow it anew tells more: {ended:?}");
}
