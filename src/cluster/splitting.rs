//! Commands that are done in parts: each partition does its own, and the answers are put together in the order of the command.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::partition::first_number;
use crate::cluster::request_places::RequestWay;
use crate::cluster::router::Router;
use crate::engine::elsewhere::Command;
use crate::engine::elsewhere::PurgeFrom;
use crate::engine::elsewhere::PurgeScope;
use crate::engine::elsewhere::Reply;
use crate::engine::elsewhere::verbs;
use crate::error::Unavailable;
use crate::id::SequenceNumber;

/// The parts of a command by partition, each with its places in the whole.
type CommandParts<T> = BTreeMap<u16, (Vec<usize>, Vec<T>)>;

impl Router {
    /// Has each part of a command done in its partition.
    ///
    /// # Errors
    /// Why nothing was done; [`Unavailable::Unanswered`] when some parts were done, or may have been, and others not.
    pub(crate) async fn in_parts(
        self: &Arc<Router>,
        command: Command,
        way: &RequestWay,
    ) -> Result<Reply, Unavailable> {
        let partitions = self.parts_of(&command, way);
        match command {
            Command::SendEach(verbs::SendEach { queue, messages }) => {
                let command = |messages| verbs::SendEach { queue: queue.clone(), messages }.into();
                let answers = self.parts((messages, partitions), way, command, |reply| match reply {
                    Reply::SendEach(answers) => Some(answers),
                    _ => None,
                });
                Ok(Reply::SendEach(answers.await?))
            }
            Command::CompleteAll(verbs::CompleteAll { queue, deliveries }) => {
                let command = |deliveries| verbs::CompleteAll { queue: queue.clone(), deliveries }.into();
                let answers = self.parts((deliveries, partitions), way, command, |reply| match reply {
                    Reply::CompleteAll(answers) => Some(answers),
                    _ => None,
                });
                Ok(Reply::CompleteAll(answers.await?))
            }
            _ => Err(Unavailable::nonsense()),
        }
    }

    async fn parts<T, A>(
        self: &Arc<Router>,
        (whole, partitions): (Vec<T>, &[u16]),
        way: &RequestWay,
        command: impl Fn(Vec<T>) -> Command,
        answers_of: impl Fn(Reply) -> Option<Vec<A>>,
    ) -> Result<Vec<A>, Unavailable> {
        let mut all: Vec<Option<A>> = whole.iter().map(|_| None).collect();
        let mut parts: CommandParts<_> = BTreeMap::new();
        for (index, (one, partition)) in whole.into_iter().zip(partitions).enumerate() {
            let (places, part) = parts.entry(*partition).or_default();
            places.push(index);
            part.push(one);
        }
        let asked = parts.into_iter().map(|(partition, (places, part))| {
            let command = command(part);
            async move {
                let reply = self.ask(partition, command, Duration::ZERO).await;
                way.end_part(partition);
                (places, reply)
            }
        });
        let replies = futures_util::future::join_all(asked).await;
        let is_partly_done =
            replies.iter().any(|(_, reply)| reply.as_ref().map_or_else(Unavailable::may_be_done, |_| true));
        for (places, reply) in replies {
            let reply = reply.map_err(|why| if is_partly_done { partly(&why) } else { why });
            let answers = answers_of(reply?).filter(|answers| answers.len() == places.len());
            for (place, answer) in places.into_iter().zip(answers.ok_or_else(Unavailable::nonsense)?) {
                all[place] = Some(answer);
            }
        }
        all.into_iter().collect::<Option<Vec<A>>>().ok_or_else(Unavailable::nonsense)
    }

    /// A purge of a queue goes on in the next partition when there is no more of it in one.
    pub(crate) fn after_purge(&self, purge: &verbs::Purge, partition: u16, mut reply: Reply) -> Reply {
        let next = partition + 1;
        if let Reply::Purge(Ok(step)) = &mut reply
            && step.next.is_none()
            && next < self.places.partitions
        {
            let first = SequenceNumber::new(first_number(next) - 1);
            step.next = match purge.scope {
                PurgeScope::Everything => Some(PurgeFrom::Message(first)),
                PurgeScope::DeadLetters => Some(PurgeFrom::Reason(String::new(), first)),
                PurgeScope::Workflow(_) | PurgeScope::DeadLetter(_) => None,
            };
            // Each partition has an audit of its own.
            step.entry = step.entry.filter(|_| step.next.is_none());
        }
        reply
    }
}

/// What is said when one part was not done and another was, or may have been.
pub(crate) fn partly(why: &Unavailable) -> Unavailable {
    match why.may_be_done() {
        true => why.clone(),
        false => {
            Unavailable::Unanswered(format!("a part of it was not done, and others were or may be: {why}"))
        }
    }
}
