//! Receiving from all partitions: first those of this node, then those of others, and then waiting at all of them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::cluster::nodes::NodeAnswer;
use crate::cluster::partition::random;
use crate::cluster::router::Router;
use crate::cluster::shifting::Shift;
use crate::cluster::stop::pause;
use crate::cluster::wire::Ask;
use crate::cluster::wire::NodeReply;
use crate::cluster::wire::What;
use crate::engine::Client;
use crate::engine::elsewhere::Command;
use crate::engine::elsewhere::EngineVerb;
use crate::engine::elsewhere::Reply;
use crate::engine::elsewhere::is_nothing;
use crate::engine::elsewhere::new_token;
use crate::engine::elsewhere::nothing;
use crate::error::Unavailable;
use crate::limits;
use crate::token::LockToken;

/// Where there may be work.
#[derive(Clone)]
enum WorkSource {
    Here(u16, Client),
    /// All partitions of another node.
    Node(String),
}

/// A command as it is asked at one source, under a token of its own.
struct ParkedCommand {
    source: WorkSource,
    command: Command,
    token: LockToken,
}

impl Router {
    /// Hands out the first work that is found, or that comes while it is waited. With `here`, of this node's partitions only.
    pub(crate) async fn receive(
        self: &Arc<Router>,
        command: Command,
        wait: Duration,
        hurry: &Notify,
        here: bool,
    ) -> Result<Reply, Unavailable> {
        let begun = self.clock.now();
        loop {
            let sources = self.sources(here);
            // As long as somebody answers, there may just be nothing.
            let (mut failed, mut is_answered) = (Unavailable::NotOwner, false);
            for source in &sources {
                match self.look_at(asked(&command, source), Duration::ZERO).await {
                    Ok(reply) if is_nothing(&reply) => is_answered = true,
                    Ok(reply) => return Ok(reply),
                    Err(why) => failed = why,
                }
            }
            let left = wait.saturating_sub(self.clock.now().since(begun));
            if left.is_zero() || self.stop.is_said() {
                return if is_answered { Ok(nothing(&command)) } else { Err(failed) };
            }
            let slice = left.min(limits::RECEIVE_SLICE);
            let (reply, is_hurried) = match sources.is_empty() {
                true => (None, hurried(hurry, slice.min(limits::ROUTE_PAUSE * 10)).await),
                false => self.wait_at(&command, &sources, slice, hurry).await,
            };
            match reply {
                Some(reply) => return Ok(reply),
                None if is_hurried => return Ok(nothing(&command)),
                None if !is_answered => pause(limits::ROUTE_PAUSE).await,
                None => {}
            }
        }
    }

    fn sources(&self, here: bool) -> Vec<WorkSource> {
        let numbers = self.rotated();
        let own = |number: &u16| Some(WorkSource::Here(*number, self.partition(*number).client()?));
        let mut sources: Vec<WorkSource> = numbers.iter().filter_map(own).collect();
        if here {
            return sources;
        }
        let mut nodes: Vec<String> = Vec::new();
        for number in numbers {
            if let Some(node) = self.leases.owner(number)
                && node != self.node
                && !nodes.contains(&node)
            {
                nodes.push(node);
            }
        }
        sources.extend(nodes.into_iter().map(WorkSource::Node));
        sources
    }

    async fn look_at(&self, asked: ParkedCommand, wait: Duration) -> Result<Reply, Unavailable> {
        let ParkedCommand { source, command, .. } = asked;
        match source {
            WorkSource::Here(_, client) => {
                let reply = client.relay(command, wait).await?;
                Ok(Shift::new(client.engine_now(), self.clock.now()).reply(reply))
            }
            WorkSource::Node(node) => {
                let ask = Ask { partition: None, epoch: None, what: What::Have(command, wait) };
                match self.ask_node(&node, &ask, wait).await {
                    NodeAnswer::Replied(NodeReply::Reply(reply, now, _)) => {
                        Ok(Shift::new(now, self.clock.now()).reply(reply))
                    }
                    NodeAnswer::Replied(NodeReply::NotOwner(_)) | NodeAnswer::Nobody => {
                        Err(Unavailable::NotOwner)
                    }
                    NodeAnswer::Replied(other) => Err(Unavailable::Unanswered(format!("{other:?}"))),
                    NodeAnswer::Nothing(why) => Err(Unavailable::Unanswered(why)),
                }
            }
        }
    }

    /// Waits at all sources for the first that has work; what others hand out then goes back. Whether it was hurried.
    async fn wait_at(
        self: &Arc<Router>,
        command: &Command,
        sources: &[WorkSource],
        wait: Duration,
        hurry: &Notify,
    ) -> (Option<Reply>, bool) {
        let mut waits = JoinSet::new();
        let mut parked = Vec::new();
        for source in sources {
            let asked = asked(command, source);
            parked.push((asked.source.clone(), asked.token));
            let (router, command) = (self.clone(), asked.command.clone());
            waits.spawn(async move { (command, router.look_at(asked, wait).await) });
        }
        let mut is_hurried = false;
        let mut found = None;
        loop {
            let next = tokio::select! {
                biased;
                next = waits.join_next() => next,
                () = hurry.notified(), if !is_hurried => {
                    is_hurried = true;
                    self.end_waits(&parked).await;
                    continue;
                }
            };
            match next {
                None => break,
                Some(Ok((_, Ok(reply)))) if !is_nothing(&reply) => {
                    found = Some(reply);
                    break;
                }
                // A source that has failed is asked again with the others.
                Some(_) => {}
            }
        }
        if !waits.is_empty() {
            self.end_waits(&parked).await;
            self.runtime.spawn(self.clone().give_back_rest(waits));
        }
        (found, is_hurried)
    }

    /// Tells the sources that it was waited long enough.
    async fn end_waits(&self, parked: &[(WorkSource, LockToken)]) {
        for (source, token) in parked {
            match source {
                WorkSource::Here(_, client) => client.withdraw(*token),
                WorkSource::Node(node) => {
                    let ask = Ask { partition: None, epoch: None, what: What::Withdraw(*token) };
                    self.tell_node(node, &ask).await;
                }
            }
        }
    }

    /// Gives back, uncounted, what came too late.
    async fn give_back_rest(self: Arc<Router>, mut waits: JoinSet<(Command, Result<Reply, Unavailable>)>) {
        while let Some(ended) = waits.join_next().await {
            let Ok((command, Ok(reply))) = ended else { continue };
            self.give_all_back(&command, reply).await;
        }
    }

    /// Gives back, uncounted, all that a command was answered with.
    pub(crate) async fn give_all_back(&self, command: &Command, reply: Reply) {
        let mut given = Vec::new();
        command.give_back(reply, &mut |command| given.push(command));
        for command in given {
            self.give_back(command).await;
        }
    }
}

/// A command as it is asked at a source.
fn asked(command: &Command, source: &WorkSource) -> ParkedCommand {
    let mut chance = [0; 12];
    chance[..8].copy_from_slice(&random().to_le_bytes());
    chance[8..].copy_from_slice(&random().to_le_bytes()[..4]);
    let token = LockToken::new(0, chance);
    let token = match source {
        WorkSource::Here(partition, _) => token.of_partition(*partition),
        WorkSource::Node(_) => token,
    };
    let mut command = command.clone();
    if let Some(new) = new_token(&mut command) {
        *new = token;
    }
    ParkedCommand { source: source.clone(), command, token }
}

async fn hurried(hurry: &Notify, wait: Duration) -> bool {
    tokio::time::timeout(wait, hurry.notified()).await.is_ok()
}
