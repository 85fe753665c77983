//! Nodes and servers are killed, stopped and cut off, clocks set, disks full, files wiped and damaged (`disturbances`), while
//! messages are sent and handled; a ledger outside says what was acknowledged. `SERIATIM_CHAOS_SECONDS` says for how long,
//! `SERIATIM_SEED` which of it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::cluster::tests::disturbances::DisturbedCluster;
use crate::cluster::tests::disturbances::NODES;
use crate::cluster::tests::process::Answer;
use crate::cluster::tests::process::PARTITIONS;
use crate::cluster::tests::snapshots::trimmed_partitions;
use crate::engine::tests::log::Random;

const WORKFLOWS: u64 = 12;

/// Bytes of each third message: enough that files are written, which wait for 16 MiB of log.
const LARGE: usize = 1_000_000;

/// How long what was sent may take to arrive in the end.
const DRAINED: Duration = Duration::from_secs(90);

/// What is known of a workflow: positions up to these.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Acknowledged as sent.
    sent: u64,
    /// Acknowledged as completed.
    done: u64,
    /// Completed, or perhaps.
    maybe_done: u64,
}

impl Known {
    /// Notes what was received: the next, or one whose completion was not acknowledged.
    fn receive(&mut self, position: u64, complete: impl FnOnce() -> Option<Answer>) {
        assert!(position > self.done, "position {position} is doubled: {self:?}");
        let next = self.maybe_done.max(self.done) + 1;
        assert!(position <= next, "position {position} comes before {next}: {self:?}");
        self.maybe_done = self.maybe_done.max(position);
        if complete() == Some(Answer::Done) {
            self.done = self.done.max(position);
        }
    }
}

struct Chaos {
    cluster: DisturbedCluster,
    random: Random,
    ledger: BTreeMap<u64, Known>,
    /// The same of what their completions have sent to other workflows.
    passed_on: BTreeMap<u64, Known>,
}

impl Chaos {
    fn start(seed: u64) -> Option<Chaos> {
        Some(Chaos {
            cluster: DisturbedCluster::start()?,
            random: Random::new(seed),
            ledger: BTreeMap::new(),
            passed_on: BTreeMap::new(),
        })
    }

    /// Sends the next message of a workflow, until it is acknowledged by whichever node.
    fn send(&mut self, workflow: u64) {
        let position = self.ledger.entry(workflow).or_default().sent + 1;
        for node in 0..NODES {
            let bytes = if position.is_multiple_of(3) { LARGE } else { 10 };
            let answer = self.cluster.ask(node, &format!("send w{workflow} {position} {bytes}"));
            if answer == Some(Answer::Sent) {
                self.ledger.entry(workflow).or_default().sent = position;
                return;
            }
        }
    }

    /// Receives a message from each node that has one, and completes it; what comes of that, too.
    fn receive(&mut self) {
        for node in 0..NODES {
            let cluster = &mut self.cluster;
            if let Some(Answer::Got { workflow, position }) = cluster.ask(node, "receive") {
                let known = self.ledger.entry(workflow).or_default();
                known.receive(position, || cluster.ask(node, "pass-on"));
            }
            if let Some(Answer::Got { workflow, position }) = cluster.ask(node, "receive-out") {
                let known = self.passed_on.entry(workflow).or_default();
                known.receive(position, || cluster.ask(node, "complete"));
            }
        }
    }

    fn is_drained(&self) -> bool {
        // Of a workflow whose first send nobody acknowledged, nothing need arrive.
        let has_arrived = |workflow: &u64, sent: u64| {
            self.passed_on.get(workflow).map_or(0, |known| known.maybe_done) >= sent
        };
        let mut all = self.ledger.iter();
        all.all(|(workflow, known)| known.maybe_done >= known.sent && has_arrived(workflow, known.sent))
    }
}

/// The first number that was asked for by a variable.
fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn nothing_acknowledged_is_lost_doubled_or_overtaken_whatever_happens_to_nodes_servers_and_links() {
    let seed = number("SERIATIM_SEED").unwrap_or(1);
    let seconds = Duration::from_secs(number("SERIATIM_CHAOS_SECONDS").unwrap_or(15));
    println!("SERIATIM_SEED={seed}");
    let Some(mut chaos) = Chaos::start(seed) else { return };
    let clock = SystemClock::default();
    let mut next = Duration::from_secs(2);
    while clock.elapsed() < seconds || !chaos.cluster.is_all_done() {
        let workflow = chaos.random.below(WORKFLOWS);
        chaos.send(workflow);
        chaos.receive();
        if std::env::var("SERIATIM_CHAOS_LOGS").is_ok() {
            (0..NODES).for_each(|node| drop(chaos.cluster.ask(node, "status")));
        }
        if clock.elapsed() > next {
            chaos.cluster.disturb(&mut chaos.random);
            next = clock.elapsed() + Duration::from_millis(300 + chaos.random.below(1_000));
        }
    }
    chaos.cluster.end_all();
    let end = clock.elapsed() + DRAINED;
    while !chaos.is_drained() && clock.elapsed() < end {
        chaos.receive();
    }
    let troubles = chaos.cluster.troubles();
    let Chaos { ledger, passed_on, .. } = &chaos;
    assert!(chaos.is_drained(), "lost: {ledger:?}, {passed_on:?}; wrong: {troubles:?}");
    let sent: u64 = chaos.ledger.values().map(|known| known.sent).sum();
    let trimmed = trimmed_partitions(&chaos.cluster.servers.options("chaos", "observer"), PARTITIONS);
    println!(
        "{sent} messages, {trimmed} logs trimmed, none lost, doubled or overtaken: {:?}; wrong: {troubles:?}",
        chaos.cluster.happened
    );
    // Fewer may have none in which much has happened.
    assert!(trimmed > 0 || sent < 200, "no snapshot was taken");
    assert!(sent > 10, "too few messages to mean anything: {sent}");
}
