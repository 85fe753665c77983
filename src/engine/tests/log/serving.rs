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

/// A log behind which a fault is found with an entry.
struct Faulty(u64, Fault);

impl Log for Faulty {
    fn append(&self, entry: Entry<'_>) -> Result<(), Fault> {
        if entry.position < self.0 { Ok(()) } else { Err(self.1.clone()) }
    }

    fn read_from(&self, _position: u64, _each: &mut EachEntry<'_>) -> Result<(), Fault> {
        Ok(())
    }

    fn trim(&self, _through: u64) -> Result<(), Fault> {
        Ok(())
    }
}

/// What comes of serving when a fault ends that.
async fn served_until(fault: Fault) -> Result<Option<Fault>, OpenError> {
    let folder = tempfile::tempdir().unwrap();
    let (path, log) = (folder.path().join("faulty.redb"), Arc::new(Faulty(3, fault)));
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
    assert!(matches!(ended, Ok(Some(Fault::Log(_)))), "to follow it anew tells more: {ended:?}");
}

#[test]
fn a_fault_of_the_log_when_an_epoch_begins_is_one_after_which_it_is_followed_anew() {
    let folder = tempfile::tempdir().unwrap();
    let taken_over = |name: &str, fault: Fault| {
        let (path, log) = (folder.path().join(name), Arc::new(Faulty(1, fault)));
        let follower = Follower::open(&path, FollowerOptions::shared_by(1), log)?;
        let (clock, passed) = (Arc::new(SystemClock::default()), PassedTime::default());
        follower.serve(1, 1, clock, passed, |_, _| panic!("it has not taken over"))
    };
    let ended = taken_over("log.redb", Fault::Log("it has not got the entry before".to_owned()));
    assert!(matches!(ended, Ok(Some(Fault::Log(_)))), "{ended:?}");
    let ended = taken_over("deposed.redb", Fault::Deposed);
    assert!(matches!(ended, Err(OpenError::Fault(Fault::Deposed))), "{ended:?}");
}
