//! Creating, changing and deleting topics and their subscriptions: what the bucket has of a topic says whether it can be done, every
//! partition does it, and then whoever asks is answered.

use std::time::Duration;

use crate::cluster::definition_change::DefinitionChange;
use crate::cluster::definitions::QueueDefinition;
use crate::cluster::placing::ARBITER;
use crate::cluster::router::Router;
use crate::cluster::splitting::partly;
use crate::cluster::topic_ask::TopicAsk;
use crate::cluster::topic_changes::ORDER_STAYS;
use crate::cluster::topic_changes::PlannedTopic;
use crate::cluster::topic_changes::new_plan;
use crate::cluster::topic_changes::topic_revision;
use crate::engine::elsewhere::Command;
use crate::engine::elsewhere::Reply;
use crate::engine::elsewhere::SubscriptionPlan;
use crate::engine::elsewhere::TopicChange;
use crate::error::QueueRefusal;
use crate::error::TopicRefusal;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::limits;

/// What comes of it: what is to be from now on, if it is something else.
type Judgement = Result<Option<QueueDefinition>, Reply>;

impl Router {
    /// `None` when somebody else has changed the same topic at the same moment: it has to be judged anew.
    pub(crate) async fn define_topic_unless_overtaken(
        &self,
        name: &QueueName,
        ask: &TopicAsk,
        command: &Command,
    ) -> Result<Option<Reply>, Unavailable> {
        let Some((revision, found)) = self.entry_to_change(name).await? else { return Ok(None) };
        let definition = match self.judge_topic(name, ask, (revision, found))? {
            Ok(Some(definition)) => definition,
            Ok(None) => {
                self.wherever_it_goes_on(name, revision).await?;
                return Ok(Some(ask.answer(false)));
            }
            Err(refused) => {
                // Whoever looks again is not to find what it was.
                if matches!(refused, Reply::Topic(Err(TopicRefusal::TopicChanged(_)))) {
                    self.wherever_it_goes_on(name, revision).await?;
                }
                return Ok(Some(refused));
            }
        };
        check_writable(&definition)?;
        if ask.ends_something() {
            self.check_all_go_on()?;
        }
        let Some(revision) = self.definitions.put(definition.clone(), revision).await? else {
            return Ok(None);
        };
        let done = async {
            self.put_on_record(command, &definition, revision).await?;
            match definition {
                // It is done whoever has ended it: under its name there may be another topic by then.
                QueueDefinition::Going { .. } => {
                    self.end_deleting(name, revision).await?;
                }
                _ if ask.ends_something() => self.everywhere(name, revision).await?,
                _ => self.wherever_it_goes_on(name, revision).await?,
            }
            Ok(())
        };
        done.await.map_err(|why: Unavailable| partly(&why))?;
        Ok(Some(ask.answer(true)))
    }

    fn judge_topic(
        &self,
        name: &QueueName,
        ask: &TopicAsk,
        (revision, found): (u64, Option<QueueDefinition>),
    ) -> Result<Judgement, Unavailable> {
        let plan = match &found {
            Some(QueueDefinition::Topic { plan, .. }) => plan,
            _ => {
                let is_queue = matches!(found, Some(QueueDefinition::There { .. }));
                return self.judge_new(name, ask, revision, is_queue);
            }
        };
        let planned = PlannedTopic { name, revision, plan };
        let changed = match ask {
            TopicAsk::Topic(TopicChange::Delete) => {
                return Ok(Ok(Some(QueueDefinition::Going { name: name.clone() })));
            }
            TopicAsk::Topic(change) => planned
                .change(change, (self.definitions.counts(), limits::QUEUES_MAX))
                .map_err(|refusal| Reply::Topic(Err(refusal))),
            TopicAsk::Subscription { queue, name, change } => {
                check_order(plan.subscriptions.iter().find(|known| known.name == *name), change)?;
                planned
                    .change_queue(queue, name, change.clone())
                    .map_err(|refusal| Reply::Queue(Err(refusal)))
            }
        };
        let definition = |plan| QueueDefinition::Topic { name: name.clone(), plan: Box::new(plan) };
        Ok(changed.map(|plan| plan.map(definition)))
    }

    /// What comes of it where there is no topic.
    fn judge_new(
        &self,
        name: &QueueName,
        ask: &TopicAsk,
        revision: u64,
        is_queue: bool,
    ) -> Result<Judgement, Unavailable> {
        let topics = self.definitions.counts().topics;
        let refusal = match ask {
            TopicAsk::Topic(TopicChange::Create) if is_queue => TopicRefusal::NameIsQueue(name.clone()),
            TopicAsk::Topic(TopicChange::Create) if topics >= limits::TOPICS_MAX => {
                TopicRefusal::TooManyTopics(topics)
            }
            TopicAsk::Topic(TopicChange::Create) => {
                if revision == 0 {
                    self.definitions.check_new_name()?;
                }
                let plan = Box::new(new_plan(revision, self.clock.wall()));
                return Ok(Ok(Some(QueueDefinition::Topic { name: name.clone(), plan })));
            }
            TopicAsk::Topic(_) => TopicRefusal::TopicNotFound(name.clone()),
            TopicAsk::Subscription { queue, change: DefinitionChange::Create(_), .. } => {
                return Ok(Err(Reply::Queue(Err(QueueRefusal::NotSubscribed(queue.clone())))));
            }
            TopicAsk::Subscription { queue, .. } => {
                return Ok(Err(Reply::Queue(Err(QueueRefusal::QueueNotFound(queue.clone())))));
            }
        };
        Ok(Err(Reply::Topic(Err(refusal))))
    }

    /// Has what an operator has asked in the audit of the arbiter, which does it before the other partitions.
    async fn put_on_record(
        &self,
        command: &Command,
        definition: &QueueDefinition,
        revision: u64,
    ) -> Result<(), Unavailable> {
        let Command::OnRecord(mut on_record) = command.clone() else { return Ok(()) };
        if let (Command::ChangeTopic(verb), QueueDefinition::Topic { plan, .. }) =
            (&mut on_record.command, definition)
            && verb.change != TopicChange::Create
        {
            verb.change = TopicChange::Put { revision: topic_revision(revision), plan: plan.clone() };
        }
        self.ask(ARBITER, Command::OnRecord(on_record), Duration::ZERO).await.map(drop)
    }
}

/// Refuses another order: whether each partition could have it is not known before all have.
fn check_order(known: Option<&SubscriptionPlan>, change: &DefinitionChange) -> Result<(), Unavailable> {
    match (known, change) {
        (Some(known), DefinitionChange::Options(options)) if known.options.order != options.order => {
            Err(Unavailable::Unsupported(ORDER_STAYS))
        }
        _ => Ok(()),
    }
}

/// Refuses what could not be read again, and what is more than the servers and the log of a partition take at once.
fn check_writable(definition: &QueueDefinition) -> Result<(), Unavailable> {
    let bytes = serde_json::to_vec(definition).expect("a definition can be written");
    if bytes.len() > limits::LOG_COMMAND_BYTES_MAX {
        let (bytes, bytes_max) = (bytes.len(), limits::LOG_COMMAND_BYTES_MAX);
        return Err(Unavailable::TooLarge { bytes, bytes_max });
    }
    let again: Option<QueueDefinition> = serde_json::from_slice(&bytes).ok();
    match again.as_ref() == Some(definition) {
        true => Ok(()),
        false => Err(Unavailable::Unsupported("a rule cannot have a value that is infinite or no number")),
    }
}
