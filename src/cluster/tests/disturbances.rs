//! What is done to nodes, servers and what is between them, and how long it lasts.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::cluster::options::ClusterOptions;
use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::process::Answer;
use crate::cluster::tests::process::NodeProcess;
use crate::cluster::tests::process::PARTITIONS;
use crate::cluster::tests::proxy::Link;
use crate::cluster::tests::proxy::LinkState;
use crate::cluster::tests::proxy::Network;
use crate::engine::tests::log::Random;

pub(crate) const NODES: usize = 3;
const SERVERS: usize = 3;

/// How long an answer of a node is waited for that probably gives none.
const BRIEFLY: Duration = Duration::from_millis(300);
const ANSWER: Duration = Duration::from_millis(1_500);

/// What can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Disturbance {
    NodeKilled,
    NodeKilledAndWiped,
    NodeStopped,
    /// No server reaches it, and it goes on.
    NodeCutOff,
    /// What it sends and is sent stays on the way.
    NodeLinksHang,
    /// The way to one of the servers is cut.
    LinkCut,
    ClockSetForward,
    ClockSetBack,
    DiskFull,
    ServerKilled,
    /// Its nodes reach it, the other servers do not.
    ServerCutOff,
    /// In what one server has of a partition's log.
    BitFlipped,
}

impl Disturbance {
    const ALL: [Disturbance; 12] = [
        Disturbance::NodeKilled,
        Disturbance::NodeKilledAndWiped,
        Disturbance::NodeStopped,
        Disturbance::NodeCutOff,
        Disturbance::NodeLinksHang,
        Disturbance::LinkCut,
        Disturbance::ClockSetForward,
        Disturbance::ClockSetBack,
        Disturbance::DiskFull,
        Disturbance::ServerKilled,
        Disturbance::ServerCutOff,
        Disturbance::BitFlipped,
    ];

    /// All, or those that `SERIATIM_CHAOS_ONLY` names, to look at them more closely.
    fn wanted() -> Vec<Disturbance> {
        let only = std::env::var("SERIATIM_CHAOS_ONLY").ok();
        let is_wanted = |what: &Disturbance| {
            only.as_ref().is_none_or(|only| only.split(',').any(|name| name == format!("{what:?}")))
        };
        Disturbance::ALL.into_iter().filter(is_wanted).collect()
    }

    fn is_of_server(self) -> bool {
        matches!(self, Disturbance::ServerKilled | Disturbance::ServerCutOff | Disturbance::BitFlipped)
    }
}

/// Something that was done and is not over.
#[derive(Clone, Copy, Debug)]
struct Trouble {
    what: Disturbance,
    /// The node or the server.
    number: usize,
    until: Duration,
}

/// Nodes and servers with links between them, and what was done to them.
pub(crate) struct DisturbedCluster {
    pub(crate) servers: NatsServers,
    nodes: Vec<NodeProcess>,
    /// Of each node, to each server.
    links: Vec<Vec<Link>>,
    /// Of each server, to each other.
    routes: BTreeMap<(usize, usize), Link>,
    /// The last, as processes use it as long as they live.
    _network: Network,
    clock: SystemClock,
    troubles: Vec<Trouble>,
    kinds: Vec<Disturbance>,
    /// What is still to be done before everything is done once more.
    deck: Vec<Disturbance>,
    pub(crate) happened: BTreeMap<Disturbance, u64>,
}

impl DisturbedCluster {
    pub(crate) fn start() -> Option<DisturbedCluster> {
        let (network, mut routes) = (Network::begin(), BTreeMap::new());
        let servers = NatsServers::routed(SERVERS, "sync_interval: always", "", |from, to, port| {
            let link = network.link(port);
            let port = link.port;
            routes.insert((from, to), link);
            port
        })?;
        let to_servers = || servers.ports().into_iter().map(|port| network.link(port)).collect();
        let links: Vec<Vec<Link>> = (0..NODES).map(|_| to_servers()).collect();
        let mut cluster = DisturbedCluster {
            servers,
            nodes: Vec::new(),
            links,
            routes,
            _network: network,
            clock: SystemClock::default(),
            troubles: Vec::new(),
            kinds: Disturbance::wanted(),
            deck: Vec::new(),
            happened: BTreeMap::new(),
        };
        for node in 0..NODES {
            cluster.nodes.push(NodeProcess::start_with(&cluster.options(node), None));
        }
        cluster.nodes.iter_mut().for_each(NodeProcess::wait);
        Some(cluster)
    }

    /// The options of a node, which knows no other way to the servers than its links.
    fn options(&self, node: usize) -> ClusterOptions {
        let mut options = self.servers.options("chaos", &format!("node-{node}"));
        let addresses = self.links[node].iter().map(|link| format!("nats://127.0.0.1:{}", link.port));
        options.servers = addresses.collect();
        options
    }

    fn trouble_of(&self, node: usize) -> Option<Disturbance> {
        let trouble =
            self.troubles.iter().find(|trouble| !trouble.what.is_of_server() && trouble.number == node);
        trouble.map(|trouble| trouble.what)
    }

    /// Asks a node, unless it cannot hear.
    pub(crate) fn ask(&mut self, node: usize, what: &str) -> Option<Answer> {
        self.end_in_time();
        match self.trouble_of(node) {
            Some(Disturbance::NodeStopped) => None,
            Some(Disturbance::NodeCutOff | Disturbance::NodeLinksHang) => {
                self.nodes[node].ask_within(what, BRIEFLY)
            }
            _ => self.nodes[node].ask_within(what, ANSWER),
        }
    }

    /// What is wrong, as the nodes say.
    pub(crate) fn troubles(&mut self) -> Vec<String> {
        let said = (0..NODES).filter_map(|node| match self.ask(node, "trouble") {
            Some(Answer::Stopped(why)) if !why.is_empty() => Some(format!("node {node}: {why}")),
            _ => None,
        });
        said.collect()
    }

    /// Whether everything was done once.
    pub(crate) fn is_all_done(&self) -> bool {
        self.happened.len() == self.kinds.len()
    }

    /// Does what comes next, out of all that can be done in an order of chance.
    pub(crate) fn disturb(&mut self, random: &mut Random) {
        if self.deck.is_empty() {
            self.deck.clone_from(&self.kinds);
        }
        let at = random.below(self.deck.len() as u64);
        let what = self.deck.swap_remove(usize::try_from(at).unwrap());
        let number = if what.is_of_server() { self.server(random) } else { self.node(random) };
        let until = self.clock.elapsed() + Duration::from_millis(500 + random.below(3_500));
        println!("{:>8.3} {what:?} {number}", self.clock.elapsed().as_secs_f64());
        let lasts = self.begin(what, number, random);
        if lasts {
            self.troubles.push(Trouble { what, number, until });
        }
        *self.happened.entry(what).or_default() += 1;
    }

    /// A server; no other is in trouble then, or has less than it had acknowledged.
    fn server(&mut self, random: &mut Random) -> usize {
        self.end(|trouble| trouble.what.is_of_server());
        self.servers.let_catch_up();
        usize::try_from(random.below(SERVERS as u64)).unwrap()
    }

    /// A node that is not in trouble; one other at most is.
    fn node(&mut self, random: &mut Random) -> usize {
        let troubled = |cluster: &DisturbedCluster| -> Vec<usize> {
            (0..NODES).filter(|node| cluster.trouble_of(*node).is_some()).collect()
        };
        if let [first, _, ..] = troubled(self)[..] {
            self.end(|trouble| !trouble.what.is_of_server() && trouble.number == first);
        }
        let free: Vec<usize> = (0..NODES).filter(|node| self.trouble_of(*node).is_none()).collect();
        free[usize::try_from(random.below(free.len() as u64)).unwrap()]
    }

    /// Does something. Whether it lasts.
    fn begin(&mut self, what: Disturbance, number: usize, random: &mut Random) -> bool {
        match what {
            Disturbance::NodeKilled | Disturbance::NodeKilledAndWiped => {
                self.nodes[number].kill();
                if what == Disturbance::NodeKilledAndWiped {
                    std::fs::remove_dir_all(self.nodes[number].folder()).unwrap();
                }
                self.nodes[number] = NodeProcess::start_with(&self.options(number), None);
                return false;
            }
            Disturbance::NodeStopped => self.nodes[number].pause(),
            Disturbance::NodeCutOff => self.set_links(number, LinkState::Cut),
            Disturbance::NodeLinksHang => self.set_links(number, LinkState::Hanging),
            Disturbance::LinkCut => {
                let server = usize::try_from(random.below(SERVERS as u64)).unwrap();
                self.links[number][server].set(LinkState::Cut);
            }
            Disturbance::ClockSetForward | Disturbance::ClockSetBack => {
                let sign = if what == Disturbance::ClockSetForward { "" } else { "-" };
                let millis = 3_600_000 * (1 + random.below(12));
                self.nodes[number].ask_within(&format!("clock {sign}{millis}"), BRIEFLY);
                return false;
            }
            Disturbance::DiskFull => {
                let bytes = [0, 4_096, 1 << 20][usize::try_from(random.below(3)).unwrap()];
                self.nodes[number].ask_within(&format!("room {bytes}"), BRIEFLY);
            }
            Disturbance::ServerKilled => self.servers.kill(number),
            Disturbance::ServerCutOff => self.set_routes(number, LinkState::Cut),
            Disturbance::BitFlipped => {
                self.flip_bit(number, random);
                return false;
            }
        }
        true
    }

    fn flip_bit(&mut self, server: usize, random: &mut Random) {
        self.servers.kill(server);
        let partition = random.below(u64::from(PARTITIONS));
        if let Some(block) = self.servers.largest_block(server, &format!("seriatim-chaos-{partition}")) {
            let mut bytes = std::fs::read(&block).unwrap();
            if !bytes.is_empty() {
                let at = usize::try_from(random.below(bytes.len() as u64)).unwrap();
                bytes[at] ^= 1 << random.below(8);
                std::fs::write(block, bytes).unwrap();
            }
        }
        self.servers.start_again(server);
    }

    fn set_links(&self, node: usize, state: LinkState) {
        self.links[node].iter().for_each(|link| link.set(state));
    }

    fn set_routes(&self, server: usize, state: LinkState) {
        let own = self.routes.iter().filter(|((from, to), _)| *from == server || *to == server);
        own.for_each(|(_, route)| route.set(state));
    }

    /// Ends what has lasted long enough.
    fn end_in_time(&mut self) {
        let now = self.clock.elapsed();
        self.end(|trouble| trouble.until <= now);
    }

    /// Ends everything.
    pub(crate) fn end_all(&mut self) {
        self.end(|_| true);
    }

    fn end(&mut self, is_over: impl Fn(&Trouble) -> bool) {
        let (over, lasting) = self.troubles.iter().partition(|trouble| is_over(trouble));
        self.troubles = lasting;
        let over: Vec<Trouble> = over;
        for Trouble { what, number, .. } in over {
            match what {
                Disturbance::NodeStopped => self.nodes[number].go_on(),
                Disturbance::NodeCutOff | Disturbance::NodeLinksHang | Disturbance::LinkCut => {
                    self.set_links(number, LinkState::Open);
                }
                Disturbance::DiskFull => {
                    // It may hang with what was asked before.
                    let has_room = (0..20).any(|_| self.nodes[number].ask("room all").is_some());
                    assert!(has_room, "node {number} does not answer");
                }
                Disturbance::ServerKilled => self.servers.start_again(number),
                Disturbance::ServerCutOff => self.set_routes(number, LinkState::Open),
                _ => {}
            }
        }
    }
}
