//! What is asked through a node's client goes to the partitions that it is about, wherever they are.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::task::Context;
use std::task::Waker;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::clock::Timestamp;
use crate::cluster::definitions::QueueDefinitions;
use crate::cluster::lane::RequestLane;
use crate::cluster::leases::Leases;
use crate::cluster::left::hurry_when_left;
use crate::cluster::left::seen_left;
use crate::cluster::node_means::NodeMeans;
use crate::cluster::nodes::NodeAnswer;
use crate::cluster::nodes::Nodes;
use crate::cluster::partition::Partition;
use crate::cluster::partition::PartitionState;
use crate::cluster::placing::CommandPlace;
use crate::cluster::placing::PartitionMap;
use crate::cluster::request_places::PlaceNeed;
use crate::cluster::request_places::RequestPlaces;
use crate::cluster::request_places::RequestWay;
use crate::cluster::routed_request::RoutedRequest;
use crate::cluster::server_health::ServerHealth;
use crate::cluster::shifting::Shift;
use crate::cluster::stop::ClusterStop;
use crate::cluster::stop::pause;
use crate::cluster::wire::Ask;
use crate::cluster::wire::NodeReply;
use crate::cluster::wire::What;
use crate::engine::elsewhere::Command;
use crate::engine::elsewhere::Elsewhere;
use crate::engine::elsewhere::EngineClock;
use crate::engine::elsewhere::Inbox;
use crate::engine::elsewhere::LetterHandle;
use crate::engine::elsewhere::Reply;
use crate::engine::elsewhere::Request;
use crate::engine::elsewhere::answer;
use crate::engine::elsewhere::new_token;
use crate::engine::elsewhere::token_of;
use crate::engine::elsewhere::too_many;
use crate::engine::elsewhere::verbs::Purge;
use crate::error::Unavailable;
use crate::limits;
use crate::mutex::Mutex;
use crate::task::boxed;
use crate::token::LockToken;

/// How long the thread waits for a request before it looks whether the node is stopped.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What it takes to have something done in whichever partition.
pub(crate) struct Router {
    pub(crate) node: String,
    pub(crate) partitions: Vec<Arc<Partition>>,
    /// What is asked of each partition in an order.
    pub(crate) lanes: Vec<Arc<RequestLane>>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) nodes: Nodes,
    pub(crate) definitions: Arc<QueueDefinitions>,
    pub(crate) health: Arc<ServerHealth>,
    pub(crate) places: PartitionMap,
    pub(crate) clock: EngineClock,
    pub(crate) runtime: Handle,
    pub(crate) stop: ClusterStop,
    /// Receivers that can be told that they have waited long enough.
    waiting: Mutex<HashMap<LockToken, Arc<Notify>>>,
    /// Receivers that wait.
    receivers: AtomicUsize,
    /// Where the next one looks first.
    next: AtomicUsize,
}

impl Router {
    pub(crate) fn new(
        partitions: Vec<Arc<Partition>>,
        nodes: Nodes,
        node: NodeMeans,
        clock: EngineClock,
    ) -> Router {
        let count = u16::try_from(partitions.len()).expect("there is a limit to their number");
        Router {
            node: node.leases.node().to_owned(),
            lanes: partitions.iter().map(|_| Arc::default()).collect(),
            partitions,
            leases: node.leases,
            nodes,
            definitions: node.definitions,
            health: Arc::default(),
            places: PartitionMap { partitions: count },
            clock,
            runtime: node.runtime,
            stop: node.stop,
            waiting: Mutex::default(),
            receivers: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
        }
    }

    /// Takes what is asked, in its order, until the client is closed or the node stopped.
    pub(crate) fn run(self: Arc<Router>, mut elsewhere: Elsewhere) {
        let places = RequestPlaces::new(self.places.partitions, limits::ROUTED_MAX);
        let inbox = elsewhere.inbox();
        while !self.stop.is_said() {
            let Some(request) = elsewhere.next(LOOK_EVERY) else { continue };
            match request {
                Request::Ask(letter) if letter.waits_for().is_some() => {
                    let (router, inbox) = (self.clone(), inbox.clone());
                    self.begin(async move {
                        let reply = router.wait_for_work(&letter).await;
                        answer(letter, reply, &inbox);
                    });
                }
                Request::Close { slot } => {
                    let _ = slot.send(());
                    return;
                }
                request @ (Request::Ask(_) | Request::TryOut(_) | Request::Query(_)) => {
                    if let Some(request) = RoutedRequest::of(request) {
                        self.begin_in_place(request, &places, &inbox);
                    }
                }
                // What only takes time, or ends something, keeps nobody waiting.
                request => {
                    let router = self.clone();
                    self.begin(async move { router.have_done(request).await });
                }
            }
        }
    }

    /// Begins a request once there is a place for it; until then, those that come later wait in the inbox.
    fn begin_in_place(self: &Arc<Router>, request: RoutedRequest, places: &RequestPlaces, inbox: &Inbox) {
        let mut way = RequestWay::default();
        match self.runtime.block_on(places.take(&self.need_of(&request, &way))) {
            Ok(held) => {
                way.places = held;
                let (router, inbox) = (self.clone(), inbox.clone());
                self.begin(async move { router.have_request_done(request, &way, &inbox).await });
            }
            Err(why) => request.refuse(why),
        }
    }

    /// Of what a request needs places: of the partitions that it would wait for if they did not answer.
    fn need_of(&self, request: &RoutedRequest, way: &RequestWay) -> PlaceNeed {
        match request {
            RoutedRequest::Ask(_, command) | RoutedRequest::TryOut(_, command) => {
                if let Some(home) = self.home_of(command, way) {
                    return PlaceNeed::One(home);
                }
                match self.places.of(command) {
                    CommandPlace::One(partition) => PlaceNeed::One(partition),
                    CommandPlace::Any => PlaceNeed::One(self.any_of(way)),
                    CommandPlace::Parts => {
                        PlaceNeed::Parts(self.parts_of(command, way).iter().copied().collect())
                    }
                    CommandPlace::Each => PlaceNeed::All,
                    CommandPlace::Work | CommandPlace::Nowhere(_) => PlaceNeed::Others,
                }
            }
            RoutedRequest::Look(look, scope, _) => self.need_of_look(look, *scope, way),
        }
    }

    async fn have_request_done(self: &Arc<Router>, request: RoutedRequest, way: &RequestWay, inbox: &Inbox) {
        match request {
            RoutedRequest::Ask(letter, command) => answer(letter, self.have(command, way).await, inbox),
            RoutedRequest::TryOut(letter, command) => {
                answer(letter, self.try_out(command, way).await, inbox);
            }
            RoutedRequest::Look(look, scope, slot) => slot(self.look(look, scope, way).await),
        }
    }

    /// Begins something at once, so that what is asked in an order gets to its partition in that order.
    pub(crate) fn begin(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut work = boxed(work);
        let _entered = self.runtime.enter();
        if work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            self.runtime.spawn(work);
        }
    }

    /// Does what is asked of no partition.
    async fn have_done(self: &Arc<Router>, request: Request) {
        match request {
            Request::Backup(backup) => {
                let why = "there is no file to copy: what was sent is on the NATS servers";
                let _ = backup.slot.send(Err(Unavailable::Unsupported(why).into()));
            }
            Request::GiveBack(command) => self.give_back(*command).await,
            Request::Sleep { until, slot } => {
                let wait = until.saturating_sub(self.clock.elapsed());
                pause(wait).await;
                let _ = slot.send(());
            }
            Request::Withdraw(token) => self.withdraw(token).await,
            _ => {}
        }
    }

    /// Has a command done where it belongs, that does not wait for work.
    async fn have(self: &Arc<Router>, command: Command, way: &RequestWay) -> Result<Reply, Unavailable> {
        let (place, command) = match self.through_outbox(command, way).await? {
            Ok(placed) => placed,
            Err(refused) => return Ok(refused),
        };
        match place {
            CommandPlace::One(partition) => {
                let purge = purge_of(&command).cloned();
                let reply = self.ask_by_rules(partition, command).await?;
                Ok(match purge {
                    Some(purge) => self.after_purge(&purge, partition, reply),
                    None => reply,
                })
            }
            CommandPlace::Any => self.ask_by_rules(self.any_of(way), command).await,
            CommandPlace::Each => self.define(command).await,
            CommandPlace::Work => self.receive(command, Duration::ZERO, &Notify::new(), false).await,
            CommandPlace::Parts => self.in_parts(command, way).await,
            CommandPlace::Nowhere(why) => Err(Unavailable::Unsupported(why)),
        }
    }

    async fn try_out(&self, command: Command, way: &RequestWay) -> Result<Reply, Unavailable> {
        let (place, command) = match self.through_outbox(command, way).await? {
            Ok(placed) => placed,
            Err(refused) => return Ok(refused),
        };
        match place {
            CommandPlace::One(partition) => {
                let ask = Ask::of_partition(partition, What::TryOut(command));
                self.reply_of(partition, &ask, Duration::ZERO).await
            }
            _ => Err(Unavailable::Unsupported("only what one partition does can be tried")),
        }
    }

    /// The partition of a request that can go to any.
    pub(crate) fn any_of(&self, way: &RequestWay) -> u16 {
        way.any(|| self.any_partition())
    }

    /// The partition of each thing in a command that is done in parts.
    pub(crate) fn parts_of<'w>(&self, command: &Command, way: &'w RequestWay) -> &'w [u16] {
        way.parts(|| self.places.parts(command, || self.any_of(way)))
    }

    /// A partition for what can go to any: one that this node has and keeps, or the next that somebody has; one of this node that waits
    /// for its log only where there is no other.
    fn any_partition(&self) -> u16 {
        let rotated = self.rotated();
        let is_kept = |number: &&u16| self.partition(**number).client_that_hands_out().is_some();
        let has_owner = |number: &&u16| self.leases.owner(**number).is_some();
        let may_answer = |number: &&u16| has_owner(number) && !self.partition(**number).is_stuck();
        let others = || rotated.iter().find(may_answer).or_else(|| rotated.iter().find(has_owner));
        *rotated.iter().find(is_kept).or_else(others).unwrap_or(&rotated[0])
    }

    /// All partitions, beginning with another one each time.
    pub(crate) fn rotated(&self) -> Vec<u16> {
        let first = self.next.fetch_add(1, Ordering::Relaxed) % self.partitions.len();
        let mut numbers: Vec<u16> = (0..self.places.partitions).collect();
        numbers.rotate_left(first);
        numbers
    }

    pub(crate) fn partition(&self, number: u16) -> &Arc<Partition> {
        &self.partitions[usize::from(number)]
    }

    /// Has a command done in a partition, wherever that is.
    pub(crate) async fn ask(
        &self,
        partition: u16,
        mut command: Command,
        wait: Duration,
    ) -> Result<Reply, Unavailable> {
        if let Some(token) = new_token(&mut command) {
            // Whoever settles finds the partition by it.
            *token = token.of_partition(partition);
        }
        let ask = Ask::of_partition(partition, What::Have(command, wait));
        match wait.is_zero() {
            true => self.ask_in_order(partition, ask).await,
            // Whoever waits for work keeps nobody else waiting.
            false => self.reply_of(partition, &ask, wait).await,
        }
    }

    async fn reply_of(&self, partition: u16, ask: &Ask, wait: Duration) -> Result<Reply, Unavailable> {
        match self.said(partition, ask, wait).await? {
            NodeReply::Reply(reply, now, _) => Ok(Shift::new(now, self.clock.now()).reply(reply)),
            _ => Err(Unavailable::nonsense()),
        }
    }

    /// Asks whoever has a partition, until somebody has it, or for long enough. Nothing is asked twice that may have been done.
    pub(crate) async fn said(
        &self,
        partition: u16,
        ask: &Ask,
        wait: Duration,
    ) -> Result<NodeReply, Unavailable> {
        let begun = self.clock.now();
        let mut known = None;
        loop {
            let node = self.who_has(partition, known.take());
            match self.ask_at(node.as_deref(), ask, wait).await.said()? {
                Ok(said) => return Ok(said),
                Err(owner) => known = owner,
            }
            self.pause_before_next(partition, begun).await?;
        }
    }

    /// Lets a moment pass before a partition is asked again, unless that takes too long already or leads to nothing.
    pub(crate) async fn pause_before_next(
        &self,
        partition: u16,
        begun: Timestamp,
    ) -> Result<(), Unavailable> {
        self.check_goes_on(partition)?;
        if self.clock.now().since(begun) > limits::ROUTE_WAIT || self.stop.is_said() {
            return Err(Unavailable::NotOwner);
        }
        pause(limits::ROUTE_PAUSE).await;
        Ok(())
    }

    /// Sees to it that nobody waits for a partition with which no node goes on.
    pub(crate) fn check_goes_on(&self, partition: u16) -> Result<(), Unavailable> {
        match self.partition(partition).status().state {
            PartitionState::Stopped(why) if self.leases.is_stopped_everywhere(partition) => {
                Err(Unavailable::PartitionStopped { partition, why })
            }
            _ => Ok(()),
        }
    }

    /// The node that has a partition: this one, or the one of which somebody has said so, or that has the lease.
    pub(crate) fn who_has(&self, partition: u16, known: Option<String>) -> Option<String> {
        match self.partition(partition).client() {
            Some(_) => Some(self.node.clone()),
            None => known.or_else(|| self.leases.owner(partition)).filter(|node| *node != self.node),
        }
    }

    /// Asks a node once, which may be this one.
    pub(crate) async fn ask_at(&self, node: Option<&str>, ask: &Ask, wait: Duration) -> NodeAnswer {
        match node {
            Some(node) if node == self.node => NodeAnswer::Replied(self.do_here(ask).await),
            Some(node) => self.ask_node(node, ask, wait).await,
            None => NodeAnswer::Nobody,
        }
    }

    /// Asks another node, as long as it is there.
    pub(crate) async fn ask_node(&self, node: &str, ask: &Ask, wait: Duration) -> NodeAnswer {
        // Whoever is not alive is not asked, whoever has named it, and nobody by who hears nothing: what is asked then may be heard late.
        // So it is known that nothing was done.
        let there = self.leases.incarnation(node).filter(|_| self.leases.hears_itself());
        let Some(incarnation) = there else { return NodeAnswer::Nobody };
        let gone = async {
            while self.leases.incarnation(node) == Some(incarnation) {
                pause(self.leases.lease() / 4).await;
            }
        };
        tokio::select! {
            heard = self.nodes.ask((node, incarnation), ask, wait) => heard,
            () = gone => NodeAnswer::Nothing(format!("node {node} is gone")),
        }
    }

    /// Tells another node something that is not answered. Without it there is nothing that it would have to know.
    pub(crate) async fn tell_node(&self, node: &str, ask: &Ask) {
        if let Some(incarnation) = self.leases.incarnation(node) {
            self.nodes.tell((node, incarnation), ask).await;
        }
    }

    /// Gives back something to the partition that has handed it out, without waiting for it.
    pub(crate) async fn give_back(&self, command: Command) {
        let CommandPlace::One(partition) = self.places.of(&command) else { return };
        match self.partition(partition).client() {
            Some(client) => client.give_back(command),
            None => {
                // Without an owner there is no lock either.
                let Some(node) = self.leases.owner(partition) else { return };
                let ask = Ask::of_partition(partition, What::GiveBack(command));
                self.tell_node(&node, &ask).await;
            }
        }
    }

    /// Tells a receiver that it has waited long enough, also one of a workflow that another node has.
    async fn withdraw(&self, token: LockToken) {
        if !self.hurry(token)
            && let Some(node) = self.leases.owner(self.places.token(token))
            && node != self.node
        {
            self.tell_node(&node, &Ask::of_node(What::Withdraw(token))).await;
        }
    }

    /// Tells a receiver on this node that it has waited long enough. Whether it may be here.
    pub(crate) fn hurry(&self, token: LockToken) -> bool {
        if let Some(hurry) = self.waiting.lock().get(&token) {
            hurry.notify_one();
        } else if let Some(client) = self.partition(self.places.token(token)).client() {
            client.withdraw(token);
        } else {
            return false;
        }
        true
    }

    /// Lets a receiver be hurried by its token while it waits.
    pub(crate) async fn hurried_by<T>(&self, token: LockToken, work: impl AsyncFnOnce(&Notify) -> T) -> T {
        let hurry = Arc::new(Notify::new());
        self.waiting.lock().insert(token, hurry.clone());
        let done = work(&hurry).await;
        self.waiting.lock().remove(&token);
        done
    }

    /// Ends the wait of a receiver of a workflow that waits no more, wherever that is.
    async fn withdraw_when_left(&self, letter: &LetterHandle, token: Option<LockToken>) -> Infallible {
        loop {
            seen_left(letter).await;
            if let Some(token) = token {
                self.withdraw(token).await;
            }
        }
    }

    /// Lets a receiver wait for work, unless too many do.
    async fn wait_for_work(self: &Arc<Router>, letter: &LetterHandle) -> Result<Reply, Unavailable> {
        let Some(command) = letter.command() else { return Err(Unavailable::NotOwner) };
        let waiting = self.receivers.fetch_add(1, Ordering::Relaxed);
        let reply = match waiting < limits::RECEIVERS_MAX {
            true => self.work(command, letter).await,
            false => Ok(too_many(&command, waiting)),
        };
        self.receivers.fetch_sub(1, Ordering::Relaxed);
        reply
    }

    async fn work(self: &Arc<Router>, command: Command, letter: &LetterHandle) -> Result<Reply, Unavailable> {
        let wait = letter.wait();
        match (self.places.of(&command), letter.token()) {
            (CommandPlace::One(partition), _) => {
                let token = token_of(&command);
                tokio::select! {
                    biased;
                    reply = self.ask(partition, command, wait) => reply,
                    never = self.withdraw_when_left(letter, token) => match never {},
                }
            }
            (CommandPlace::Work, token) => {
                let receive = async |hurry: &Notify| {
                    tokio::select! {
                        reply = self.receive(command, wait, hurry, false) => reply,
                        never = hurry_when_left(letter, hurry) => match never {},
                    }
                };
                match token {
                    Some(token) => self.hurried_by(token, receive).await,
                    None => receive(&Notify::new()).await,
                }
            }
            _ => Err(Unavailable::nonsense()),
        }
    }
}

/// The purge that a command is, if it is one.
fn purge_of(command: &Command) -> Option<&Purge> {
    match command.asked() {
        Command::Purge(purge) => Some(purge),
        _ => None,
    }
}
