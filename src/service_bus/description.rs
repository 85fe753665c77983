//! What Service Bus says of an entity and no queue of ours knows: kept beside it, as long as it is there.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use dashmap::DashMap;
use serde::Deserialize;
use serde::Serialize;
use tokio::sync::watch;

use crate::clock::Timestamp;
use crate::engine::Client;
use crate::error::QueueError;
use crate::error::QueueRefusal;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::limits;
use crate::own_queues::SERVICE_BUS_QUEUE;
use crate::records::EndpointRecords;
use crate::records::RecordError;
use crate::service_bus::creation_instant::CreationInstant;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;
use crate::topic::Rule;

/// The queue in which descriptions live; no client can use it.
pub(crate) const RECORDS_QUEUE: &str = SERVICE_BUS_QUEUE;

/// The record that is another with each change of any; no entity has this name.
const LAST_CHANGE: &str = "!last-change";

const RECORDS: EndpointRecords = EndpointRecords::new(RECORDS_QUEUE);

/// Who may use an entity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EntityStatus {
    /// Everybody who has the right.
    #[default]
    Active,
    /// Nobody.
    Disabled,
    /// Who receives.
    SendDisabled,
    /// Who sends.
    ReceiveDisabled,
}

impl EntityStatus {
    pub(crate) fn read(text: &str) -> Option<EntityStatus> {
        Some(match text {
            "Active" => EntityStatus::Active,
            "Disabled" => EntityStatus::Disabled,
            "SendDisabled" => EntityStatus::SendDisabled,
            "ReceiveDisabled" => EntityStatus::ReceiveDisabled,
            _ => return None,
        })
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            EntityStatus::Active => "Active",
            EntityStatus::Disabled => "Disabled",
            EntityStatus::SendDisabled => "SendDisabled",
            EntityStatus::ReceiveDisabled => "ReceiveDisabled",
        }
    }

    pub(crate) fn may_send(self) -> bool {
        matches!(self, EntityStatus::Active | EntityStatus::ReceiveDisabled)
    }

    pub(crate) fn may_receive(self) -> bool {
        matches!(self, EntityStatus::Active | EntityStatus::SendDisabled)
    }
}

/// A rule that allows a key of its own something. Returned as it came: the keys of a daemon are those of its file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AuthorizationRule {
    pub(crate) kind: String,
    /// Elements and their text, in the order in which they came.
    pub(crate) leaves: Vec<(String, String)>,
    pub(crate) rights: Vec<String>,
}

/// What a document says of a rule and no rule of ours knows. What the rule is not any more is not told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RuleSettings {
    /// Values of its filter that are texts here.
    pub(crate) values: Vec<TypedValue>,
    /// An action with parameters.
    pub(crate) action: Option<ActionText>,
}

/// A value of a type that is none here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TypedValue {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) text: String,
    /// The text that it is here.
    #[serde(rename = "kept")]
    pub(crate) stored: String,
}

/// An action with parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ActionText {
    pub(crate) expression: String,
    pub(crate) parameters: Vec<TypedValue>,
    /// The action that it is here, with their values in it.
    #[serde(rename = "kept")]
    pub(crate) stored: String,
}

/// The description of an entity: what its queue does not know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Description {
    /// When the entity was made that it is of: another of this name has nothing of it. `None` while it is being made.
    pub(crate) of: Option<Timestamp>,
    /// Whether every message has to name its session, and every receiver takes one.
    pub(crate) requires_session: bool,
    pub(crate) status: EntityStatus,
    /// The entity to which every message goes on.
    pub(crate) forward_to: Option<String>,
    /// The entity to which every dead letter goes on.
    pub(crate) forward_dead_letters_to: Option<String>,
    pub(crate) user_metadata: Option<String>,
    pub(crate) updated_at: Option<Timestamp>,
    /// How long messages live at most in the subscriptions of a topic, or in a subscription by what it says itself.
    pub(crate) time_to_live_ms: Option<u64>,
    /// What a topic gives its subscriptions when they are made.
    pub(crate) duplicate_window_ms: Option<u64>,
    /// The largest body that they take, where it is not the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) body_bytes_max: Option<usize>,
    pub(crate) authorization: Vec<AuthorizationRule>,
    /// By the names of the subscription's rules.
    pub(crate) rules: BTreeMap<String, RuleSettings>,
    /// By the names of Service Bus; returned as it was given, and nothing depends on it.
    #[serde(alias = "told")]
    pub(crate) echoed: BTreeMap<String, String>,
}

impl Description {
    /// Whether it is of the entity that was made at an instant.
    fn is_of(&self, created_at: CreationInstant) -> bool {
        self.of.is_none_or(|of| created_at.may_be(of))
    }
}

/// All descriptions, in memory as they are on disk.
pub(crate) struct Descriptions {
    client: Client,
    /// Read by the tasks of all connections, for each message that is sent; written when somebody says something new.
    by_name: DashMap<QueueName, Arc<Description>>,
    /// Counts the changes, for who forwards.
    changes: watch::Sender<u64>,
    /// Whether other nodes of a cluster describe entities too.
    pub(crate) are_several: bool,
    /// Whether some could not be read, as a partition of the cluster was stopped.
    is_partial: AtomicBool,
}

impl Descriptions {
    pub(crate) fn new(client: Client, are_several: bool) -> Descriptions {
        let (by_name, changes, is_partial) = (DashMap::new(), watch::Sender::new(0), AtomicBool::new(false));
        Descriptions { client, by_name, changes, are_several, is_partial }
    }

    /// Reads all that are kept. While a partition of a cluster is stopped, nobody says of which entities something is: then what
    /// the others have of each is read.
    pub(crate) async fn open(&self) -> Result<(), RecordError> {
        match RECORDS.open(&self.client).await {
            // The queue is there, or nothing is kept yet.
            Err(Unavailable::PartitionStopped { .. }) => {}
            opened => opened?,
        }
        match self.read_all().await {
            Err(error) if error.is_of_stopped_partition() => {
                if !self.is_partial.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, "what is said of some entities of Service Bus is not known");
                }
                self.read_each().await
            }
            read => read,
        }
    }

    async fn read_all(&self) -> Result<(), RecordError> {
        let (mut after, mut known) = (None, BTreeSet::new());
        loop {
            let page =
                match self.client.queue(RECORDS_QUEUE)?.workflows(after.as_ref(), limits::PAGE_MAX).await {
                    // It could not be made, as where the disk is full: nothing is kept yet.
                    Err(QueueError::Refused(QueueRefusal::QueueNotFound(_))) => return Ok(()),
                    page => page?,
                };
            let is_last = page.len() < limits::PAGE_MAX;
            for id in page.into_iter().filter_map(|view| view.workflow_id) {
                after = Some(id.clone());
                if id.as_str() == LAST_CHANGE {
                    continue;
                }
                let name = QueueName::new(id.as_str())?;
                if let Some(found) = RECORDS.load(&self.client, id.as_str()).await? {
                    self.put(&name, Some(found));
                    known.insert(name);
                }
            }
            if is_last {
                break;
            }
        }
        let gone = self.by_name.iter().filter(|entry| !known.contains(entry.key()));
        let gone: Vec<QueueName> = gone.map(|entry| entry.key().clone()).collect();
        gone.iter().for_each(|name| self.put(name, None));
        self.is_partial.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Reads what is said of each entity that is there. What a stopped partition has stays as it is known.
    async fn read_each(&self) -> Result<(), RecordError> {
        let queues = self.client.all_queues().await?.into_iter().map(|view| view.name);
        let topics = self.client.topics(None, limits::TOPICS_MAX).await?.into_iter().map(|topic| topic.name);
        for name in queues.chain(topics) {
            match RECORDS.load(&self.client, name.as_str()).await {
                Err(error) if error.is_of_stopped_partition() => {}
                Err(RecordError::Queue(QueueError::Refused(QueueRefusal::QueueNotFound(_)))) => return Ok(()),
                found => self.put(&name, found?),
            }
        }
        Ok(())
    }

    /// Reads them anew if another node has changed one since, and returns what it has said of that.
    pub(crate) async fn read_changed(&self, seen: &Option<String>) -> Result<Option<String>, RecordError> {
        let said = RECORDS.load(&self.client, LAST_CHANGE).await.inspect_err(|error| {
            if error.is_of_stopped_partition() {
                self.is_partial.store(true, Ordering::Relaxed);
            }
        })?;
        if said != *seen {
            self.open().await?;
        } else if self.is_partial.load(Ordering::Relaxed) {
            // The partition may be back, with what was not read.
            match self.read_all().await {
                Err(error) if error.is_of_stopped_partition() => {}
                read => read?,
            }
        }
        Ok(said)
    }

    /// The description of an entity that was made at an instant.
    pub(crate) fn of(&self, name: &QueueName, created_at: CreationInstant) -> Arc<Description> {
        let known = self.by_name.get(name).filter(|known| known.is_of(created_at));
        known.map(|known| known.clone()).unwrap_or_default()
    }

    /// Refuses what is asked of an entity in whose place there is another of its name by now.
    pub(crate) fn check_current(&self, named: (&QueueName, CreationInstant)) -> Result<(), AmqpRefusal> {
        self.check_status(named, |_| true)
    }

    /// Refuses what the status of an entity excludes now, and everything where there is another of its name by now.
    pub(crate) fn check_status(
        &self,
        (name, created_at): (&QueueName, CreationInstant),
        may: fn(EntityStatus) -> bool,
    ) -> Result<(), AmqpRefusal> {
        // Asked for each message that is sent: nothing is copied.
        let known = self.by_name.get(name);
        // In a cluster an entity is as old as it is on the partitions that answer.
        let is_another =
            |known: &Description| known.of.is_some_and(|of| of > created_at.at) && !self.are_several;
        if known.as_ref().is_some_and(|known| is_another(known)) {
            let refusal = format!("{name} was deleted and made again: attach again");
            return Err(AmqpRefusal::new(condition::DETACH_FORCED, refusal));
        }
        let known = known.filter(|known| known.is_of(created_at));
        let status = known.map_or(EntityStatus::default(), |known| known.status);
        if may(status) {
            return Ok(());
        }
        let status = status.as_str();
        let refusal = format!("The messaging entity {name} is disabled for this: its status is {status}");
        Err(AmqpRefusal::new(condition::ENTITY_DISABLED, refusal))
    }

    /// The names of all entities that are described.
    pub(crate) fn names(&self) -> Vec<QueueName> {
        self.by_name.iter().map(|known| known.key().clone()).collect()
    }

    /// What is said of a name, whatever entity of that name it is of.
    pub(crate) fn described(&self, name: &QueueName) -> Option<Arc<Description>> {
        self.by_name.get(name).map(|known| known.clone())
    }

    /// Names and descriptions of all that forward something.
    pub(crate) fn forwarding(&self) -> Vec<(QueueName, Arc<Description>)> {
        let forwards = |description: &Description| {
            description.forward_to.is_some() || description.forward_dead_letters_to.is_some()
        };
        let forwarding = self.by_name.iter().filter(|known| forwards(known.value()));
        let mut forwarding: Vec<_> =
            forwarding.map(|known| (known.key().clone(), known.value().clone())).collect();
        forwarding.sort_by(|(one, _), (other, _)| one.cmp(other));
        forwarding
    }

    /// Tells of every change.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Replaces the description of an entity. It is durable when this returns.
    pub(crate) async fn describe(
        &self,
        name: &QueueName,
        description: &Description,
    ) -> Result<(), RecordError> {
        let description = (*description != Description::default()).then_some(description);
        // Where it could not be made at the start, it may be possible now.
        RECORDS.open(&self.client).await?;
        RECORDS.store(&self.client, name.as_str(), description).await?;
        self.put(name, description.cloned());
        if self.are_several {
            let change = self.client.token()?.to_string();
            RECORDS.store(&self.client, LAST_CHANGE, Some(&change)).await?;
        }
        Ok(())
    }

    /// Refuses to say something new of an entity while it is not sure of which it is said.
    pub(crate) fn check_sure(
        &self,
        (name, created_at): (&QueueName, CreationInstant),
    ) -> Result<(), RecordError> {
        match self.of(name, created_at).of.is_none() && created_at.may_be_earlier {
            true => Err(RecordError::Unsure(name.clone())),
            false => Ok(()),
        }
    }

    /// Says something of a rule of a subscription that has these rules, and nothing any more of those that are gone. It is refused
    /// while it is not sure of which entity it is said.
    pub(crate) async fn describe_rule(
        &self,
        (queue, created_at): (&QueueName, CreationInstant),
        (rules, rule): (&[Rule], &str),
        values: RuleSettings,
    ) -> Result<(), RecordError> {
        let before = self.of(queue, created_at);
        let of = before.of.or(Some(created_at.at));
        let mut description = Description { of, ..(*before).clone() };
        description.rules.retain(|name, _| rules.iter().any(|rule| rule.name() == name));
        match values == RuleSettings::default() {
            true => drop(description.rules.remove(rule)),
            false => drop(description.rules.insert(rule.to_owned(), values)),
        }
        if description.rules == before.rules {
            return Ok(());
        }
        self.check_sure((queue, created_at))?;
        self.describe(queue, &description).await
    }

    fn put(&self, name: &QueueName, description: Option<Description>) {
        let before = match &description {
            Some(description) => self.by_name.insert(name.clone(), Arc::new(description.clone())),
            None => self.by_name.remove(name).map(|(_, before)| before),
        };
        if before.as_deref() == description.as_ref() {
            return;
        }
        self.changes.send_modify(|count| *count += 1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::QueueView;
    use crate::queue::QueueOptions;

    #[tokio::test]
    async fn an_entity_keeps_its_description_while_the_partition_is_stopped_that_has_made_it_first() {
        let (engine, _) = crate::testing::engine().await.unwrap();
        let queue = engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
        let mut view = queue.view().await.unwrap();
        let descriptions = Descriptions::new(engine.client().clone(), true);
        let of = Some(view.created_at);
        let said = Description { of, status: EntityStatus::Disabled, ..Description::default() };
        descriptions.describe(queue.name(), &said).await.unwrap();
        // As the other partitions say.
        view.created_at = view.created_at + Duration::from_millis(7);
        view.missing_partitions = vec![0];
        let is_refused = |view: &QueueView| {
            let named = (queue.name(), CreationInstant::from(view));
            descriptions.check_status(named, EntityStatus::may_send).is_err()
        };
        assert!(is_refused(&view));
        assert_eq!(*descriptions.of(queue.name(), CreationInstant::from(&view)), said);
        view.missing_partitions.clear();
        assert!(!is_refused(&view), "another entity of its name has nothing of it");
        engine.close().await;
    }

    #[tokio::test]
    async fn nothing_new_is_said_of_an_entity_while_it_is_not_sure_when_it_was_made() {
        let (engine, _) = crate::testing::engine().await.unwrap();
        let descriptions = Descriptions::new(engine.client().clone(), true);
        let name = QueueName::new("t/subscriptions/s").unwrap();
        let unsure = CreationInstant { at: Timestamp::from_millis(9), may_be_earlier: true };
        let rules = [Rule::everything()];
        let action = Some(ActionText::default());
        let settings = RuleSettings { values: Vec::new(), action };
        let named = rules[0].name();
        let refused = descriptions.describe_rule((&name, unsure), (&rules, named), settings.clone()).await;
        assert!(matches!(refused, Err(RecordError::Unsure(_))), "{refused:?}");
        let known = Description { of: Some(Timestamp::from_millis(7)), ..Description::default() };
        descriptions.describe(&name, &known).await.unwrap();
        descriptions.describe_rule((&name, unsure), (&rules, named), settings).await.unwrap();
        let said = descriptions.of(&name, CreationInstant { at: Timestamp::from_millis(7), ..unsure });
        assert_eq!((said.of, said.rules.len()), (known.of, 1), "it is as old as it was");
        engine.close().await;
    }
}
