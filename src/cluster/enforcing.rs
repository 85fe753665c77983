//! Making the engine of a partition have the queues and topics that all partitions have.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::definition_change::DefinitionChange;
use crate::cluster::definitions::QueueDefinition;
use crate::cluster::definitions::QueueDefinitions;
use crate::cluster::topic_ask::TopicAsk;
use crate::cluster::topic_changes::enforce_topic;
use crate::cluster::topic_changes::remove_topic;
use crate::cluster::topic_changes::topic_revision;
use crate::engine::Client;
use crate::engine::elsewhere::Command;
use crate::engine::elsewhere::Reply;
use crate::engine::elsewhere::TopicChange;
use crate::engine::elsewhere::TopicPlan;
use crate::engine::elsewhere::verbs;
use crate::error::OperationError;
use crate::error::QueueError;
use crate::error::QueueRefusal;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::limits;
use crate::mutex::Mutex;
use crate::queue::QueueOptions;

/// Which definitions are in force in the engine of a partition.
pub(crate) struct EnforcedDefinitions {
    definitions: Arc<QueueDefinitions>,
    enforced: tokio::sync::Mutex<EnforcementState>,
    /// Queues that were changed here before the bucket had it: whoever has asked may have ended.
    ahead: AheadChanges,
}

#[derive(Default)]
struct EnforcementState {
    /// Of each name, up to which revision it is in force.
    revisions: BTreeMap<QueueName, u64>,
    /// After how many changes all that was due is in force: it is looked often whether there is another, and there may be thousands of names.
    changes: Option<u64>,
}

/// A change that the bucket may not have.
#[derive(Clone, Copy)]
struct AheadChange {
    /// When it was done, by the engine's clock.
    at: Duration,
    /// Which revision was in force then, where that is known: if it is another since, the bucket has had it.
    behind: Option<u64>,
}

/// The last change of each queue that the bucket may not have.
#[derive(Default)]
struct AheadChanges(Mutex<BTreeMap<QueueName, AheadChange>>);

impl AheadChanges {
    fn note(&self, name: QueueName, change: AheadChange) {
        self.0.lock().insert(name, change);
    }

    /// One that was done long ago.
    fn late(&self, now: Duration) -> Option<(QueueName, AheadChange)> {
        let is_late = |ahead: &AheadChange| now.saturating_sub(ahead.at) > limits::DEFINITION_AHEAD;
        let changes = self.0.lock();
        changes.iter().find(|(_, ahead)| is_late(ahead)).map(|(name, ahead)| (name.clone(), *ahead))
    }

    /// Forgets a change, unless another was done since.
    fn forget(&self, name: &QueueName, change: AheadChange) {
        let mut changes = self.0.lock();
        if changes.get(name).is_some_and(|known| known.at == change.at) {
            changes.remove(name);
        }
    }

    /// Has a change judged later, unless another was done since.
    fn put_off(&self, name: &QueueName, change: AheadChange, now: Duration) {
        let mut changes = self.0.lock();
        if let Some(known) = changes.get_mut(name).filter(|known| known.at == change.at) {
            known.at = now;
        }
    }

    fn clear(&self) {
        self.0.lock().clear();
    }
}

/// A change of a queue that the engine was asked for, and may do when nobody waits for its answer any more: dropped then, it is noted.
struct ChangeInDoubt<'a> {
    definitions: &'a EnforcedDefinitions,
    client: &'a Client,
    /// The queue, until it is known what came of it.
    name: Option<QueueName>,
}

impl Drop for ChangeInDoubt<'_> {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            let change = AheadChange { at: self.client.elapsed(), behind: None };
            self.definitions.ahead.note(name, change);
        }
    }
}

impl EnforcedDefinitions {
    pub(crate) fn new(definitions: Arc<QueueDefinitions>) -> EnforcedDefinitions {
        EnforcedDefinitions {
            definitions,
            enforced: tokio::sync::Mutex::default(),
            ahead: AheadChanges::default(),
        }
    }

    /// Has all in force in an engine that has just taken over, as they are now: nobody is to find that there is no queue that
    /// was created before, and what was deleted before it was created anew is not to be deleted again.
    ///
    /// # Errors
    /// [`Unavailable`] when they could not all be heard, or the engine ends.
    pub(crate) async fn begin(&self, client: &Client) -> Result<(), Unavailable> {
        *self.enforced.lock().await = EnforcementState::default();
        self.ahead.clear();
        self.definitions.catch_up().await?;
        self.bring(client, None).await
    }

    /// Has in force what was heard since, and again what the bucket has of queues that were changed here before it long ago.
    ///
    /// # Errors
    /// [`Unavailable`] when the engine ends.
    pub(crate) async fn go_on(&self, client: &Client) -> Result<(), Unavailable> {
        self.take_back(client.elapsed()).await;
        if self.enforced.lock().await.changes == Some(self.definitions.changes()) {
            return Ok(());
        }
        self.bring(client, None).await
    }

    /// Forgets that a queue is as the bucket has it which was changed here long ago, if that was before the bucket had it.
    async fn take_back(&self, now: Duration) {
        let Some((name, late)) = self.ahead.late(now) else { return };
        if let Some(behind) = late.behind
            && self.revision_of(&name).await > behind
        {
            // The bucket has had it since, or something else that is in force.
            self.ahead.forget(&name, late);
            return;
        }
        let newest = tokio::time::timeout(limits::STREAM_ANSWER, self.definitions.newest_of(&name)).await;
        let Ok(Ok((_, newest))) = newest else {
            self.ahead.put_off(&name, late, now);
            return;
        };
        // What only this partition has is left to whoever creates it: it may have messages.
        if matches!(newest, Some(QueueDefinition::There { .. })) {
            let mut enforced = self.enforced.lock().await;
            enforced.revisions.remove(&name);
            enforced.changes = None;
        }
        self.ahead.forget(&name, late);
    }

    /// Which revision of a definition is in force.
    async fn revision_of(&self, name: &QueueName) -> u64 {
        self.enforced.lock().await.revisions.get(name).copied().unwrap_or_default()
    }

    /// Does in the engine of the arbiter what is asked of a queue or a topic. A change that the bucket has had before, and that has
    /// waited for an owner, is not done once something else came after it: that may be in force already.
    ///
    /// # Errors
    /// [`Unavailable`] when the servers do not say what there is, or the engine ends.
    pub(crate) async fn arbitrate(&self, client: &Client, command: Command) -> Result<Reply, Unavailable> {
        if let Some(name) = changed_before_the_bucket(&command).cloned() {
            let mut doubt = ChangeInDoubt { definitions: self, client, name: Some(name.clone()) };
            let reply = client.relay(command, Duration::ZERO).await?;
            if matches!(reply, Reply::Queue(Ok(true))) {
                let behind = Some(self.revision_of(&name).await);
                self.ahead.note(name, AheadChange { at: client.elapsed(), behind });
            }
            doubt.name = None;
            return Ok(reply);
        }
        let of_topic = TopicAsk::of(&command);
        let name = match (&of_topic, deleted(&command)) {
            (Some((name, _)), _) | (None, Some(name)) => name.clone(),
            (None, None) => return client.relay(command, Duration::ZERO).await,
        };
        // Nothing is enforced meanwhile.
        let _enforced = self.enforced.lock().await;
        let newest = self.definitions.newest_of(&name).await?;
        let left = match &of_topic {
            Some((_, ask)) => left_of_topic(command, ask, newest),
            None => left_of_queue(command, newest.1.as_ref()),
        };
        match (left, of_topic) {
            (Some(command), _) => client.relay(command, Duration::ZERO).await,
            (None, of_topic) => {
                tracing::info!(queue = %name, "a change has come after a later one, and is not done any more");
                Ok(match of_topic {
                    Some((_, ask)) => ask.answer(false),
                    None => Reply::Queue(Err(QueueRefusal::QueueNotFound(name))),
                })
            }
        }
    }

    /// Has a definition in force at a revision, or a later one, and all that were heard before.
    ///
    /// # Errors
    /// [`Unavailable`] when it was not heard of in time, or the engine ends or refuses it.
    pub(crate) async fn have(
        &self,
        client: &Client,
        name: &QueueName,
        revision: u64,
    ) -> Result<(), Unavailable> {
        self.definitions.hear(name, revision).await?;
        self.bring(client, Some(name)).await
    }

    async fn bring(&self, client: &Client, asked: Option<&QueueName>) -> Result<(), Unavailable> {
        let mut enforced = self.enforced.lock().await;
        let changes = self.definitions.changes();
        let due = self.definitions.due(|name, at| enforced.revisions.get(name).is_none_or(|had| *had < at));
        let mut refused = Ok(());
        for (revision, definition) in due {
            let name = definition.name();
            if let Err(error) = enforce(client, revision, &definition).await? {
                tracing::error!(queue = %name, error, "a partition refuses what all have to have");
                if asked == Some(name) {
                    refused = Err(Unavailable::Unanswered(format!("a partition refuses {name}: {error}")));
                }
            }
            enforced.revisions.insert(name.clone(), revision);
        }
        enforced.changes = Some(changes);
        refused
    }
}

/// The queue of a command that the arbiter does before the bucket has it.
fn changed_before_the_bucket(command: &Command) -> Option<&QueueName> {
    let name = match command.asked() {
        Command::CreateQueue(verb) => &verb.name,
        Command::ChangeQueue(verb) => &verb.name,
        Command::PauseQueue(verb) => &verb.name,
        _ => return None,
    };
    name.subscription().is_none().then_some(name)
}

/// The queue that a command deletes.
fn deleted(command: &Command) -> Option<&QueueName> {
    match command.asked() {
        Command::DeleteQueue(verbs::DeleteQueue { name }) => Some(name),
        _ => None,
    }
}

/// What is left to be done of deleting a queue: nothing if there is another of its name.
fn left_of_queue(command: Command, newest: Option<&QueueDefinition>) -> Option<Command> {
    let is_made_anew = matches!(newest, Some(QueueDefinition::There { .. } | QueueDefinition::Topic { .. }));
    (!is_made_anew).then_some(command)
}

/// What is left to be done of a change of a topic that the bucket has had: nothing if it is otherwise by now.
fn left_of_topic(
    command: Command,
    ask: &TopicAsk,
    (revision, newest): (u64, Option<QueueDefinition>),
) -> Option<Command> {
    let plan = match newest {
        Some(QueueDefinition::Topic { plan, .. }) => plan,
        newest => {
            let is_over = matches!(ask, TopicAsk::Topic(TopicChange::Delete));
            return left_of_queue(command, newest.as_ref()).filter(|_| is_over);
        }
    };
    match ask {
        TopicAsk::Topic(TopicChange::Delete) => None,
        TopicAsk::Topic(TopicChange::Put { .. }) => Some(with_plan(command, topic_revision(revision), plan)),
        TopicAsk::Topic(_) => Some(command),
        TopicAsk::Subscription { name, change, .. } => {
            let known = plan.subscriptions.iter().find(|known| known.name == *name);
            let is_so = match (change, known) {
                (DefinitionChange::Delete, known) => known.is_none(),
                (DefinitionChange::Pause(paused), Some(known)) => known.paused == *paused,
                (DefinitionChange::Options(options), Some(known)) => known.options == *options,
                (DefinitionChange::Create(_), _) => true,
                (_, None) => false,
            };
            is_so.then_some(command)
        }
    }
}

/// A command that puts a plan, with another one.
fn with_plan(mut command: Command, revision: u64, plan: Box<TopicPlan>) -> Command {
    if let Command::ChangeTopic(verb) = command.asked_mut() {
        verb.change = TopicChange::Put { revision, plan };
    }
    command
}

/// Makes an engine have what is defined. Why it refuses that is an answer.
async fn enforce(
    client: &Client,
    revision: u64,
    definition: &QueueDefinition,
) -> Result<Result<(), String>, Unavailable> {
    match definition {
        QueueDefinition::There { name, options, paused } => {
            refusal_of(enforce_queue(client, name, options, *paused).await)
        }
        QueueDefinition::Topic { name, plan } => {
            refusal_of(enforce_topic(client, name, (revision, plan)).await)
        }
        QueueDefinition::Going { name } | QueueDefinition::Gone { name } => {
            let removed = refusal_of(remove_topic(client, name).await)?;
            let deleted = match client.delete_queue(name).await {
                Err(OperationError::Refused(QueueRefusal::QueueNotFound(_))) => Ok(()),
                deleted => deleted,
            };
            Ok(removed.and(refusal_of(deleted)?))
        }
    }
}

fn refusal_of<R: Error>(enforced: Result<(), OperationError<R>>) -> Result<Result<(), String>, Unavailable> {
    match enforced {
        Ok(()) => Ok(Ok(())),
        Err(OperationError::Unavailable(why)) => Err(why),
        Err(OperationError::Refused(refusal)) => Ok(Err(refusal.to_string())),
        Err(OperationError::Misuse(misuse)) => Ok(Err(misuse.to_string())),
    }
}

async fn enforce_queue(
    client: &Client,
    name: &QueueName,
    options: &QueueOptions,
    paused: bool,
) -> Result<(), QueueError> {
    client.put_queue(name, options.clone()).await?.set_paused(paused).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_is_noted_while_one_before_is_judged_is_kept_as_it_is() {
        let (ahead, name) = (AheadChanges::default(), QueueName::new("q").unwrap());
        ahead.note(name.clone(), AheadChange { at: Duration::ZERO, behind: None });
        let now = limits::DEFINITION_AHEAD * 2;
        let (_, late) = ahead.late(now).expect("it was done long ago");
        ahead.note(name.clone(), AheadChange { at: now, behind: Some(7) });
        ahead.put_off(&name, late, now * 2);
        ahead.forget(&name, late);
        let (_, kept) = ahead.late(now * 2).expect("the newer one is kept");
        assert_eq!((kept.at, kept.behind), (now, Some(7)));
        ahead.put_off(&name, kept, now * 2);
        assert!(ahead.late(now * 2).is_none());
    }
}
