//! The disk of one node is full: it says so, others go on, and it goes on itself when there is room again.

use std::time::Duration;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::process::Answer;
use crate::cluster::tests::process::NodeProcess;

/// Tries something until it is so.
fn in_time(what: &str, mut try_it: impl FnMut() -> bool) {
    let clock = SystemClock::default();
    while !try_it() {
        assert!(clock.elapsed() < Duration::from_secs(60), "it was tried in vain until {what}");
    }
}

fn stopped(node: &mut NodeProcess) -> String {
    match node.ask("stopped") {
        Some(Answer::Stopped(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// Sends a message of 1 MB until it is acknowledged: files are written after 16 MiB of log.
fn send(node: &mut NodeProcess, position: u64) {
    let large = format!("send w1 {position} 1000000");
    in_time("it is acknowledged", || node.ask(&large) == Some(Answer::Sent));
}

#[test]
fn a_node_whose_disk_is_full_says_so_others_go_on_and_it_goes_on_when_there_is_room() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (mut first, mut second) = (NodeProcess::start(&servers, 0), NodeProcess::start(&servers, 1));
    first.wait();
    second.wait();
    assert_eq!(first.ask("room 0"), Some(Answer::Done));
    for position in 1..=20 {
        send(&mut second, position);
    }
    in_time("a partition is stopped", || !stopped(&mut first).is_empty());
    let why = stopped(&mut first);
    assert!(why.contains("File too large"), "{why}");
    send(&mut second, 21);
    assert_eq!(first.ask("room all"), Some(Answer::Done));
    in_time("nothing is stopped any more", || stopped(&mut first).is_empty());
    for position in 1..=21 {
        // The partition may be given back to the node between the two, which takes the lock.
        in_time("it is handed out and completed", || {
            let got = first.ask("receive");
            got == Some(Answer::Got { workflow: 1, position }) && first.ask("complete") == Some(Answer::Done)
        });
    }
}
