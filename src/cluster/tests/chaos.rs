//! Nodes and servers are killed and stopped, and files wiped, while messages are sent and handled; a ledger outside says what was
//! acknowledged. `SERIATIM_CHAOS_SECONDS` says for how long, `SERIATIM_SEED` which of it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::process::Answer;
use crate::cluster::tests::process::NodeProcess;
use crate::cluster::tests::process::PARTITIONS;
use crate::cluster::tests::snapshots::trimmed_partitions;
use crate::engine::tests::log::Random;

const NODES: usize = 3;
const WORKFLOWS: u64 = 12;

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

struct Chaos {
    servers: NatsServers,
    nodes: Vec<NodeProcess>,
    random: Random,
    ledger: BTreeMap<u64, Known>,
    takes_down: Option<usize>,
    stopped: Option<usize>,
    happened: BTreeMap<&'static str, u64>,
}

impl Chaos {
    fn start(seed: u64) -> Option<Chaos> {
        let servers = NatsServers::start(3)?;
        let mut nodes: Vec<_> = (0..NODES).map(|number| NodeProcess::start(&servers, number)).collect();
        nodes.iter_mut().for_each(NodeProcess::wait);
        Some(Chaos {
            servers,
            nodes,
            random: Random::new(seed),
            ledger: BTreeMap::new(),
            takes_down: None,
            stopped: None,
            happened: BTreeMap::new(),
        })
    }

    fn any_node(&mut self) -> usize {
        usize::try_from(self.random.below(NODES as u64)).unwrap()
    }

    /// Does something to a node or a server, or ends what was done before.
    fn disturb(&mut self) {
        let what = match self.random.below(6) {
            0 | 1 => {
                let node = self.any_node();
                self.go_on(Some(node));
                self.nodes[node].kill();
                let wipes = self.random.once_in(2);
                if wipes {
                    std::fs::remove_dir_all(self.nodes[node].folder()).unwrap();
                }
                self.nodes[node] = NodeProcess::start(&self.servers, node);
                if wipes { "node killed, its files wiped" } else { "node killed" }
            }
            2 | 3 if self.stopped.is_none() => {
                let node = self.any_node();
                self.nodes[node].pause();
                self.stopped = Some(node);
                "node stopped"
            }
            2 | 3 => {
                self.go_on(None);
                "node went on"
            }
            _ => match self.takes_down.take() {
                Some(server) => {
                    self.servers.start_again(server);
                    "server back"
                }
                None => {
                    let server = usize::try_from(self.random.below(3)).unwrap();
                    self.servers.kill(server);
                    self.takes_down = Some(server);
                    "server killed"
                }
            },
        };
        *self.happened.entry(what).or_default() += 1;
    }

    /// Lets a node go on that was stopped, unless it is another than this one.
    fn go_on(&mut self, only: Option<usize>) {
        if self.stopped.is_some()
            && (only.is_none() || only == self.stopped)
            && let Some(node) = self.stopped.take()
        {
            self.nodes[node].go_on();
        }
    }

    fn end_disturbing(&mut self) {
        self.go_on(None);
        if let Some(server) = self.takes_down.take() {
            self.servers.start_again(server);
        }
    }

    /// Sends the next message of a workflow, until it is acknowledged by whichever node.
    fn send(&mut self, workflow: u64) {
        let position = self.ledger.entry(workflow).or_default().sent + 1;
        for node in 0..NODES {
            if self.stopped != Some(node)
                && let Some(Answer::Sent) = self.nodes[node].ask(&format!("send w{workflow} {position}"))
            {
                self.ledger.entry(workflow).or_default().sent = position;
                return;
            }
        }
    }

    /// Receives a message from each node that has one, and completes it.
    fn receive(&mut self) {
        for node in 0..NODES {
            if self.stopped == Some(node) {
                continue;
            }
            let Some(Answer::Got { workflow, position }) = self.nodes[node].ask("receive") else { continue };
            let known = self.ledger.entry(workflow).or_default();
            assert!(position > known.done, "w{workflow}/{position} is doubled: {known:?}");
            let next = known.maybe_done.max(known.done) + 1;
            assert!(position <= next, "w{workflow}/{position} comes before {next}: {known:?}");
            known.maybe_done = known.maybe_done.max(position);
            if let Some(Answer::Done) = self.nodes[node].ask("complete") {
                let known = self.ledger.entry(workflow).or_default();
                known.done = known.done.max(position);
            }
        }
    }

    fn is_drained(&self) -> bool {
        self.ledger.values().all(|known| known.maybe_done >= known.sent)
    }
}

/// The first number that was asked for by a variable.
fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn nothing_acknowledged_is_lost_doubled_or_overtaken_while_nodes_and_servers_die() {
    let seed = number("SERIATIM_SEED").unwrap_or(1);
    let seconds = Duration::from_secs(number("SERIATIM_CHAOS_SECONDS").unwrap_or(15));
    let Some(mut chaos) = Chaos::start(seed) else { return };
    let clock = SystemClock::default();
    let mut next = Duration::from_secs(2);
    while clock.elapsed() < seconds {
        let workflow = chaos.random.below(WORKFLOWS);
        chaos.send(workflow);
        chaos.receive();
        if clock.elapsed() > next {
            chaos.disturb();
            next = clock.elapsed() + Duration::from_millis(400 + chaos.random.below(1_200));
        }
    }
    chaos.end_disturbing();
    let end = clock.elapsed() + Duration::from_secs(60);
    while !chaos.is_drained() {
        assert!(clock.elapsed() < end, "SERIATIM_SEED={seed}: lost: {:?}", chaos.ledger);
        chaos.receive();
    }
    let sent: u64 = chaos.ledger.values().map(|known| known.sent).sum();
    let trimmed = trimmed_partitions(&chaos.servers.options("chaos", "observer"), PARTITIONS);
    println!(
        "{sent} messages, {trimmed} logs trimmed, none lost, doubled or overtaken: {:?}",
        chaos.happened
    );
    // Fewer may have none in which much has happened.
    assert!(trimmed > 0 || sent < 200, "no snapshot was taken");
    assert!(sent > 20, "too few messages to mean anything: {sent}");
}
