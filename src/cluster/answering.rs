//! What other nodes ask this one.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Subject;
use async_nats::Subscriber;
use futures_util::StreamExt;
use tokio::sync::Notify;

use crate::cluster::partition::Partition;
use crate::cluster::placing::ARBITER;
use crate::cluster::placing::CommandPlace;
use crate::cluster::request_places::PlaceNeed;
use crate::cluster::request_places::RequestPlaces;
use crate::cluster::router::Router;
use crate::cluster::wire;
use crate::cluster::wire::Ask;
use crate::cluster::wire::NodeReply;
use crate::cluster::wire::What;
use crate::engine::elsewhere::Command;
use crate::engine::elsewhere::Reply;
use crate::engine::elsewhere::is_nothing;
use crate::engine::elsewhere::token_of;
use crate::error::Fault;
use crate::error::Unavailable;
use crate::limits;

/// How often it is looked whether the node is stopped.
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl Router {
    /// Answers what others ask. Once the node is stopped it hears nothing more, so that whoever asks knows that nothing was done.
    pub(crate) async fn answer_others(self: Arc<Router>, mut asked: Subscriber) {
        let places = RequestPlaces::new(self.places.partitions, limits::ASKED_MAX);
        let (mut looks, mut is_heard) = (tokio::time::interval(LOOK_EVERY), true);
        loop {
            let message = tokio::select! {
                message = asked.next() => message,
                _ = looks.tick(), if is_heard => {
                    if self.stop.is_said() {
                        is_heard = asked.drain().await.is_err();
                    }
                    continue;
                }
            };
            // What is on the way already is answered.
            let Some(message) = message else { return };
            let ask: Option<Ask> = wire::read(&message.payload);
            let place = match ask.as_ref().is_none_or(takes_place) {
                true => places.take(&need_of(ask.as_ref())).await.map(Some),
                false => Ok(None),
            };
            let router = self.clone();
            match (place, message.reply) {
                (Ok(place), to) => self.begin(async move {
                    router.answer_one(ask, to).await;
                    drop(place);
                }),
                (Err(why), Some(to)) => self.nodes.answer(to, wire::write(&NodeReply::of(why))).await,
                (Err(_), None) => {}
            }
        }
    }

    async fn answer_one(self: &Arc<Router>, ask: Option<Ask>, to: Option<Subject>) {
        let Some(ask) = ask else {
            let why = "it does not understand what it was asked: it may be of another version".to_owned();
            if let Some(to) = to {
                self.nodes.answer(to, wire::write(&NodeReply::Failed(why))).await;
            }
            return;
        };
        let said = match (ask.partition, &ask.what) {
            (_, What::GiveBack(command)) => return self.take_back(command.clone()),
            (_, What::Withdraw(token)) => {
                self.hurry(*token);
                return;
            }
            (Some(partition), _) if partition < self.places.partitions => self.do_here(&ask).await,
            (None, What::Overview) => NodeReply::Overview(Box::new(self.own_overview())),
            (None, What::Drain(drains)) => {
                self.leases.set_draining(*drains);
                NodeReply::Defined
            }
            (None, What::Have(command, wait)) => self.hand_out_here(command.clone(), *wait).await,
            _ => NodeReply::Failed("there is no such partition".to_owned()),
        };
        match to {
            Some(to) => self.send_what_fits(&ask, said, to).await,
            None => tracing::warn!("a node has asked something without saying where the answer goes"),
        }
    }

    /// Gives back what somebody elsewhere was handed out here. Without the partition there is no lock either.
    fn take_back(&self, command: Command) {
        if let CommandPlace::One(partition) = self.places.of(&command)
            && let Some(client) = self.partition(partition).client()
        {
            client.give_back(command);
        }
    }

    /// Hands out work of the partitions that this node has.
    async fn hand_out_here(self: &Arc<Router>, command: Command, wait: Duration) -> NodeReply {
        let receive = async |hurry: &Notify| self.receive(command.clone(), wait, hurry, true).await;
        let handed = match token_of(&command) {
            Some(token) => self.hurried_by(token, receive).await,
            None => receive(&Notify::new()).await,
        };
        match handed {
            Ok(reply) => NodeReply::Reply(reply, self.clock.now(), None),
            Err(why) => NodeReply::of(why),
        }
    }

    /// Does what is asked of a partition, if this node has it. Whoever asks is told when it takes too long.
    pub(crate) async fn do_here(&self, ask: &Ask) -> NodeReply {
        let wait = match &ask.what {
            What::Have(_, wait) => *wait,
            _ => Duration::ZERO,
        };
        let most = wait.saturating_add(limits::OWN_ANSWER);
        let why = || format!("the servers have not taken it into the log of its partition for {most:?}");
        let done = tokio::time::timeout(most, self.do_in_its_time(ask)).await;
        done.unwrap_or_else(|_| NodeReply::Failed(why()))
    }

    async fn do_in_its_time(&self, ask: &Ask) -> NodeReply {
        let partition = self.partition(ask.partition.unwrap_or_default());
        let (number, asked) = (partition.number(), partition.watched().now());
        let owned = partition.owned().filter(|_| self.leases.has(number));
        let Some((client, epoch)) = owned else { return self.not_owner(ask) };
        if ask.epoch.is_some_and(|meant| meant != epoch) {
            return self.not_owner(ask);
        }
        // A lock is renewed without an entry in the log, which would be refused to whoever was deposed.
        let is_renewal = matches!(ask.what, What::Have(Command::Renew(_), _));
        if is_renewal && !self.leases.surely_writes(number, partition.watched(), &client).await {
            return self.not_owner(ask);
        }
        let replied = |reply: Result<Reply, Unavailable>| {
            Ok(NodeReply::Reply(reply?, client.engine_now(), Some(epoch)))
        };
        let done = match &ask.what {
            What::Have(command, _) if number == ARBITER && self.places.of(command) == CommandPlace::Each => {
                replied(partition.enforced.arbitrate(&client, command.clone()).await)
            }
            What::Have(command, wait) => replied(client.relay(command.clone(), *wait).await),
            What::TryOut(command) => replied(client.try_relay(command.clone()).await),
            What::Look(look) => {
                look.clone().look(&client).await.map(|found| NodeReply::Found(Box::new(found)))
            }
            What::Define(name, revision) => {
                partition.enforced.have(&client, name, *revision).await.map(|()| NodeReply::Defined)
            }
            What::GiveBack(_) | What::Withdraw(_) | What::Overview | What::Drain(_) => {
                Ok(NodeReply::Failed("it is not asked of a partition".to_owned()))
            }
        };
        match done {
            Ok(said) if is_renewal || finds_nothing(&said) || self.surely_had(partition, asked).await => said,
            // Nothing was written, so nothing was done.
            Ok(_) => self.not_owner(ask),
            // What such an engine has not answered it has not done: its log has not got it.
            Err(Unavailable::Closed | Unavailable::Stopped(Fault::Deposed)) => self.not_owner(ask),
            Err(why) => NodeReply::of(why),
        }
    }

    /// Whether this node surely had a partition at some instant since it was asked. What was not written was seen in the file, which may be
    /// that of a node that was deposed: a duplicate of a message that the next owner has cancelled is none.
    pub(crate) async fn surely_had(&self, partition: &Partition, asked: Duration) -> bool {
        partition.watched().has_taken_since(asked) || self.leases.surely_has(partition.number()).await
    }

    fn not_owner(&self, ask: &Ask) -> NodeReply {
        let owner = ask.partition.and_then(|partition| self.leases.owner(partition));
        NodeReply::NotOwner(owner.filter(|owner| *owner != self.node))
    }

    /// Sends an answer, or as much of it as NATS takes at once. What was handed out beyond goes back.
    async fn send_what_fits(&self, ask: &Ask, mut said: NodeReply, to: Subject) {
        let mut bytes = wire::write(&said);
        while bytes.len() > self.nodes.bytes_max() {
            said = self.shorten(ask, said, bytes.len()).await;
            bytes = wire::write(&said);
        }
        self.nodes.answer(to, bytes).await;
    }

    async fn shorten(&self, ask: &Ask, said: NodeReply, bytes: usize) -> NodeReply {
        let too_large = || NodeReply::Failed("the answer is larger than NATS takes".to_owned());
        match (said, &ask.what) {
            (NodeReply::Reply(mut reply, now, epoch), What::Have(command, _)) => {
                if is_all_or_none(command) {
                    self.give_all_back(command, reply).await;
                    return NodeReply::TooLarge { bytes, bytes_max: self.nodes.bytes_max() };
                }
                let Some(rest) = second_half(&mut reply) else { return too_large() };
                self.give_all_back(command, rest).await;
                match is_nothing(&reply) {
                    true => too_large(),
                    false => NodeReply::Reply(reply, now, epoch),
                }
            }
            (NodeReply::Found(mut found) | NodeReply::FoundBeginning(mut found), _) => match found.halve() {
                true => NodeReply::FoundBeginning(found),
                false => too_large(),
            },
            _ => too_large(),
        }
    }
}

/// Whether it says that there is nothing, which is no promise: whoever waits for work asks again.
fn finds_nothing(said: &NodeReply) -> bool {
    matches!(said, NodeReply::Reply(reply, ..) if is_nothing(reply))
}

/// Whether what a command asks for by number is handed out together, or not at all.
fn is_all_or_none(command: &Command) -> bool {
    matches!(
        command,
        Command::ReceiveDeferred(_)
            | Command::ReceiveDeferredDeadLetters(_)
            | Command::ReceiveDeferredFromWorkflow(_)
    )
}

/// Takes the second half out of what was handed out; none of what cannot be given back.
fn second_half(reply: &mut Reply) -> Option<Reply> {
    match reply {
        Reply::Receive(Ok(handed)) => Some(Reply::Receive(Ok(handed.split_off(handed.len() / 2)))),
        Reply::ReceiveHidden(Ok(shown)) => Some(Reply::ReceiveHidden(Ok(shown.split_off(shown.len() / 2)))),
        _ => None,
    }
}

/// Of what it takes a place.
fn need_of(ask: Option<&Ask>) -> PlaceNeed {
    ask.and_then(|ask| ask.partition).map_or(PlaceNeed::Others, PlaceNeed::One)
}

/// Whether it takes a place among what is under way. Those who wait are counted where they are parked, and the rest is done at once.
fn takes_place(ask: &Ask) -> bool {
    match &ask.what {
        What::Have(_, wait) => wait.is_zero(),
        What::TryOut(_) | What::Look(_) | What::Define(..) => true,
        What::GiveBack(_) | What::Withdraw(_) | What::Overview | What::Drain(_) => false,
    }
}
