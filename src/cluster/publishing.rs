//! Sends to topics: whoever sends has chosen the copies by the rules of the topic as he knew them, and the partition that stores the
//! copies says whether it has the same.

use std::time::Duration;

use crate::cluster::router::Router;
use crate::cluster::topic_changes::bucket_revision;
use crate::engine::elsewhere::Command;
use crate::engine::elsewhere::RefusedStep;
use crate::engine::elsewhere::Reply;
use crate::engine::elsewhere::StepCommand;
use crate::engine::elsewhere::StepRefusal;
use crate::error::SendRefusal;
use crate::error::Unavailable;
use crate::id::QueueName;

impl Router {
    /// Has something done in a partition. Where that has other rules of a topic than whoever has chosen by them, it is brought to what
    /// the bucket says, and asked once more: it may be the partition that has not heard of a change.
    pub(crate) async fn ask_by_rules(&self, partition: u16, command: Command) -> Result<Reply, Unavailable> {
        let chosen = chosen_by(&command);
        if chosen.is_empty() {
            return self.ask(partition, command, Duration::ZERO).await;
        }
        let reply = self.ask(partition, command.clone(), Duration::ZERO).await?;
        let Some(topic) = has_other_rules(&reply) else { return Ok(reply) };
        let chosen = chosen.iter().find(|(name, _)| name == topic).map_or(0, |(_, revision)| *revision);
        // Any server answers, and may be late.
        let revision = self.definitions.entry(topic).await?.0.max(bucket_revision(chosen));
        self.define_in(partition, topic, revision).await?;
        // Whoever chooses anew may ask any other for the rules; one that does not answer keeps nobody from sending.
        let _ = tokio::time::timeout(self.leases.lease(), self.wherever_it_goes_on(topic, revision)).await;
        self.ask(partition, command, Duration::ZERO).await
    }
}

/// The topics by whose rules a command says who gets what, each with its revision.
fn chosen_by(command: &Command) -> Vec<(QueueName, u64)> {
    match command {
        Command::Publish(verb) => vec![(verb.topic.clone(), verb.fanout.revision)],
        Command::PublishOnce(verb) => vec![(verb.topic.clone(), verb.fanout.revision)],
        Command::Transact(verb) => {
            let published = verb.steps.iter().filter_map(|step| match step {
                StepCommand::Publish(verb) => Some((verb.topic.clone(), verb.fanout.revision)),
                _ => None,
            });
            published.collect()
        }
        _ => Vec::new(),
    }
}

/// The topic of which a partition has other rules than whoever sends.
fn has_other_rules(reply: &Reply) -> Option<&QueueName> {
    let refusal = match reply {
        Reply::Send(Err(refusal)) | Reply::PublishOnce(Err(refusal)) => refusal,
        Reply::Transact(Err(RefusedStep { refusal: StepRefusal::Send(refusal), .. })) => refusal,
        _ => return None,
    };
    match refusal {
        SendRefusal::TopicChanged(topic) | SendRefusal::TopicNotFound(topic) => Some(topic),
        _ => None,
    }
}
