//! Receiving from all partitions: first those of this node, then those of others, and then waiting at all of them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::cluster::nodes::NodeAnswer;
use crate::cluster::random::random;
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
use crate::engine::elsewhere::UnlockedMessage;
use crate::engine::elsewhere::VerbOutcome;
use crate::engine::elsewhere::is_nothing;
use crate::engine::elsewhere::new_token;
use crate::engine::elsewhere::nothing;
use crate::engine::elsewhere::verbs::HideAgain;
use crate::engine::elsewhere::verbs::ReceiveHidden;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::limits;
use crate::task::boxed;
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

/// What was asked at a source, and what that has answered.
type WorkAnswer = (Command, Result<Reply, Unavailable>);

/// Asking all sources for work, of which the first that has some is enough.
struct WorkRound {
    /// Those who have not answered yet.
    waits: JoinSet<WorkAnswer>,
    /// Whom to tell that it was waited long enough.
    parked: Vec<(WorkSource, LockToken)>,
    /// Whether somebody has answered: there may just be nothing.
    is_answered: bool,
    failed: Unavailable,
}

impl Default for WorkRound {
    fn default() -> WorkRound {
        let (waits, parked, failed) = (JoinSet::new(), Vec::new(), Unavailable::NotOwner);
        WorkRound { waits, parked, is_answered: false, failed }
    }
}

impl WorkRound {
    /// Notes what a source has answered; work is left to whoever asks.
    fn note(&mut self, answer: Result<Reply, Unavailable>) -> Option<Reply> {
        match answer {
            Ok(reply) if is_nothing(&reply) => self.is_answered = true,
            Ok(reply) => return Some(reply),
            Err(why) => self.failed = why,
        }
        None
    }
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
            let mut round = WorkRound::default();
            let mut found = self.look_around(&command, &sources, &mut round).await;
            let left = wait.saturating_sub(self.clock.now().since(begun));
            let (is_over, mut is_hurried) = (left.is_zero() || self.stop.is_said(), false);
            if found.is_none() && is_over {
                found = self.wait_for_late(&mut round).await;
            } else if found.is_none() {
                let slice = left.min(limits::RECEIVE_SLICE);
                (found, is_hurried) = match sources.is_empty() {
                    true => (None, hurried(hurry, slice.min(limits::ROUTE_PAUSE * 10)).await),
                    false => self.wait_at(&command, &sources, slice, hurry, &mut round).await,
                };
            }
            let (is_answered, failed) = (round.is_answered, self.end(round).await);
            match found {
                Some(reply) => return Ok(reply),
                None if is_over && !is_answered => return Err(failed),
                None if is_over || is_hurried => return Ok(nothing(&command)),
                None if !is_answered => pause(limits::ROUTE_PAUSE).await,
                None => {}
            }
        }
    }

    fn sources(&self, here: bool) -> Vec<WorkSource> {
        let numbers = self.rotated();
        let own =
            |number: &u16| Some(WorkSource::Here(*number, self.partition(*number).client_that_hands_out()?));
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

    /// Looks at one source after the other, and takes what the first has. One that does not answer at once is not waited for.
    async fn look_around(
        self: &Arc<Router>,
        command: &Command,
        sources: &[WorkSource],
        round: &mut WorkRound,
    ) -> Option<Reply> {
        for source in sources {
            let asked = asked(command, source);
            let parked = (source.clone(), asked.token);
            let mut look = boxed(self.clone().ask_source(asked, Duration::ZERO));
            match timeout(limits::RECEIVE_STEP, look.as_mut()).await {
                Ok((_, answer)) => match round.note(answer) {
                    None => {}
                    found => return found,
                },
                Err(_) => {
                    round.parked.push(parked);
                    round.waits.spawn(look);
                }
            }
        }
        None
    }

    /// Waits for those who have not answered at once; not for long if others have.
    async fn wait_for_late(&self, round: &mut WorkRound) -> Option<Reply> {
        let most = if round.is_answered { limits::RECEIVE_LATE } else { limits::NODE_ANSWER };
        let late = async {
            while let Some(ended) = round.waits.join_next().await {
                let found = ended.ok().and_then(|(_, answer)| round.note(answer));
                if found.is_some() {
                    return found;
                }
            }
            None
        };
        timeout(most, late).await.ok().flatten()
    }

    async fn ask_source(self: Arc<Router>, asked: ParkedCommand, wait: Duration) -> WorkAnswer {
        (asked.command.clone(), self.look_at(asked, wait).await)
    }

    async fn look_at(&self, asked: ParkedCommand, wait: Duration) -> Result<Reply, Unavailable> {
        let ParkedCommand { source, command, .. } = asked;
        match source {
            WorkSource::Here(number, client) => {
                let partition = self.partition(number);
                let asked = partition.watched().now();
                let reply = client.relay(command, wait).await.map_err(of_partition)?;
                // That there is nothing is no promise, and what is handed out was written.
                if reply.is_refusal() {
                    // Nobody waits for it any longer, and the bucket may have nobody who leads it.
                    let had = timeout(limits::NODE_ANSWER, self.surely_had(partition, asked)).await;
                    if !had.unwrap_or_default() {
                        return Err(Unavailable::NotOwner);
                    }
                }
                Ok(Shift::new(client.engine_now(), self.clock.now()).reply(reply))
            }
            WorkSource::Node(node) => {
                let ask = Ask::of_node(What::Have(command, wait));
                match self.ask_node(&node, &ask, wait).await {
                    NodeAnswer::Replied(NodeReply::Reply(reply, now, _)) => {
                        Ok(Shift::new(now, self.clock.now()).reply(reply))
                    }
                    NodeAnswer::Replied(NodeReply::NotOwner(_)) | NodeAnswer::Nobody => {
                        Err(Unavailable::NotOwner)
                    }
                    NodeAnswer::Replied(NodeReply::Busy) => Err(Unavailable::Busy),
                    NodeAnswer::Replied(NodeReply::Failed(why)) => Err(Unavailable::Unanswered(why)),
                    NodeAnswer::Replied(_) => Err(Unavailable::nonsense()),
                    NodeAnswer::Nothing(why) => Err(Unavailable::Unanswered(why)),
                }
            }
        }
    }

    /// Waits at all sources for the first that has work. Whether it was hurried.
    async fn wait_at(
        self: &Arc<Router>,
        command: &Command,
        sources: &[WorkSource],
        wait: Duration,
        hurry: &Notify,
        round: &mut WorkRound,
    ) -> (Option<Reply>, bool) {
        for source in sources {
            let asked = asked(command, source);
            round.parked.push((source.clone(), asked.token));
            round.waits.spawn(boxed(self.clone().ask_source(asked, wait)));
        }
        let (mut is_hurried, mut end) = (false, self.clock.elapsed() + wait + limits::RECEIVE_LATE * 2);
        loop {
            let left = end.saturating_sub(self.clock.elapsed());
            let next = tokio::select! {
                biased;
                next = timeout(left, round.waits.join_next()) => next,
                () = hurry.notified(), if !is_hurried => {
                    (is_hurried, end) = (true, self.clock.elapsed() + limits::RECEIVE_LATE);
                    self.end_waits(&round.parked).await;
                    continue;
                }
            };
            match next {
                // Whoever is later waits for a log that takes nothing.
                Err(_) | Ok(None) => return (None, is_hurried),
                // A source that has failed is asked again with the others.
                Ok(Some(Err(_))) => {}
                Ok(Some(Ok((_, answer)))) => match round.note(answer) {
                    None => {}
                    found => return (found, is_hurried),
                },
            }
        }
    }

    /// Ends a round: what others hand out then goes back. Why nobody has answered, if nobody has.
    async fn end(self: &Arc<Router>, round: WorkRound) -> Unavailable {
        let WorkRound { waits, parked, failed, .. } = round;
        if !waits.is_empty() {
            self.end_waits(&parked).await;
            self.runtime.spawn(boxed(self.clone().give_back_rest(waits)));
        }
        failed
    }

    /// Tells the sources that it was waited long enough.
    async fn end_waits(&self, parked: &[(WorkSource, LockToken)]) {
        for (source, token) in parked {
            match source {
                WorkSource::Here(_, client) => client.withdraw(*token),
                WorkSource::Node(node) => {
                    let ask = Ask::of_node(What::Withdraw(*token));
                    self.tell_node(node, &ask).await;
                }
            }
        }
    }

    /// Gives back, uncounted, what came too late.
    async fn give_back_rest(self: Arc<Router>, mut waits: JoinSet<WorkAnswer>) {
        while let Some(ended) = waits.join_next().await {
            let Ok((command, Ok(reply))) = ended else { continue };
            self.give_all_back(&command, reply).await;
        }
    }

    /// Gives back, uncounted, all that a command was answered with. What is hidden without a lock is offered at once, and stays
    /// counted: nobody would see it before its time is over.
    pub(crate) async fn give_all_back(&self, command: &Command, reply: Reply) {
        let mut given = Vec::new();
        match (command, reply) {
            (Command::ReceiveHidden(ReceiveHidden { queue, .. }), Reply::ReceiveHidden(Ok(shown))) => {
                given.extend(shown.iter().map(|shown| offer_hidden(queue, shown)));
            }
            (command, reply) => command.give_back(reply, &mut |command| given.push(command)),
        }
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

/// Why a partition of this node has not answered. That its engine has ended says nothing of the cluster: another has it soon.
fn of_partition(why: Unavailable) -> Unavailable {
    match why.is_over() {
        true => Unavailable::NotOwner,
        false => why,
    }
}

/// Hides a message for no time at all.
fn offer_hidden(queue: &QueueName, shown: &UnlockedMessage) -> Command {
    let (queue, claim, lasts, body) = (queue.clone(), shown.claim(), Duration::ZERO, None);
    HideAgain { queue, claim, lasts, body }.into()
}

async fn hurried(hurry: &Notify, wait: Duration) -> bool {
    timeout(wait, hurry.notified()).await.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Fault;

    #[test]
    fn a_receiver_is_not_told_that_the_engine_of_one_partition_has_ended() {
        for why in [Unavailable::Closed, Unavailable::Stopped(Fault::Deposed)] {
            assert!(matches!(of_partition(why), Unavailable::NotOwner));
        }
        assert!(matches!(of_partition(Unavailable::Busy), Unavailable::Busy));
    }
}
