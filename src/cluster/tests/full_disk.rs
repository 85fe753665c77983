//! The disk of one node is full: it says so, others go on, and it goes on itself when there is room again.

use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::process::Answer;
use crate::cluster::tests::process::NodeProcess;

/// Tries something until it is so.
fn in_time(what: &str, mut try_it: impl FnMut() -> bool) {
    assert!((0..200).any(|_| try_it()), "it was tried in vain until {what}");
}

fn stopped(node: &mut NodeProcess) -> String {
    match node.ask("stopped") {
        Some(Answer::Stopped(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_node_whose_disk_is_full_says_so_others_go_on_and_it_goes_on_when_there_is_room() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (mut first, mut second) = (NodeProcess::start(&servers, 0), NodeProcess::start(&servers, 1));
    first.wait();
    second.wait();
    assert_eq!(first.ask("room 0"), Some(Answer::Done));
    let mut position = 0;
    let mut send = |node: &mut NodeProcess| {
        if node.ask(&format!("send w1 {}", position + 1)) == Some(Answer::Sent) {
            position += 1;
        }
        position
    };
    in_time("a partition is stopped", || send(&mut second) < 1 || !stopped(&mut first).is_empty());
    let why = stopped(&mut first);
    assert!(why.contains("the store failed: I/O error: File too large"), "{why}");
    let before = send(&mut second);
    in_time("the other node goes on", || send(&mut second) > before + 50);
    assert!(!stopped(&mut first).is_empty(), "it is stopped as long as there is no room");
    assert_eq!(first.ask("room all"), Some(Answer::Done));
    in_time("nothing is stopped any more", || send(&mut second) > 0 && stopped(&mut first).is_empty());
    for expected in 1..=3 {
        let got = first.ask("receive");
        assert_eq!(got, Some(Answer::Got { workflow: 1, position: expected }));
        assert_eq!(first.ask("complete"), Some(Answer::Done));
    }
}
