//! Creating, changing and deleting queues: one partition says whether it can be done, the bucket says that it is to be, and every
//! partition does it before whoever asks is answered.

use std::time::Duration;

use crate::cluster::definition_change::DefinitionChange;
use crate::cluster::definitions::QueueDefinition;
use crate::cluster::placing::ARBITER;
use crate::cluster::router::Router;
use crate::cluster::splitting::partly;
use crate::cluster::stop::pause;
use crate::cluster::topic_ask::TopicAsk;
use crate::cluster::topic_changes::ORDER_STAYS;
use crate::cluster::wire::Ask;
use crate::cluster::wire::NodeReply;
use crate::cluster::wire::What;
use crate::engine::elsewhere::Command;
use crate::engine::elsewhere::LookFor;
use crate::engine::elsewhere::LookResult;
use crate::engine::elsewhere::Reply;
use crate::engine::elsewhere::TopicChange;
use crate::engine::elsewhere::verbs;
use crate::error::QueueRefusal;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::limits;
use crate::queue::QueueOptions;

impl Router {
    /// Changes what queues there are, in every partition.
    ///
    /// # Errors
    /// [`Unavailable`] when not every partition could be reached. What was said to be is done by those later.
    pub(crate) async fn define(&self, command: Command) -> Result<Reply, Unavailable> {
        if options_of(&command).is_some_and(|options| options.delete_when_idle.is_some()) {
            return Err(Unavailable::Unsupported(
                "a queue is not deleted by being idle: each partition knows only what it has of it",
            ));
        }
        let of_topic = TopicAsk::of(&command);
        for _ in 0..limits::DEFINE_ATTEMPTS {
            let reply = match &of_topic {
                Some((name, ask)) => self.define_topic_unless_overtaken(name, ask, &command).await?,
                None => self.define_unless_overtaken(command.clone()).await?,
            };
            if let Some(reply) = reply {
                return Ok(reply);
            }
            pause(limits::ROUTE_PAUSE).await;
        }
        Err(Unavailable::Unanswered("the same queue is being changed again and again".to_owned()))
    }

    /// `None` when somebody else has changed the same queue at the same moment: it has to be judged anew.
    async fn define_unless_overtaken(&self, command: Command) -> Result<Option<Reply>, Unavailable> {
        let (name, change) = DefinitionChange::of(&command).ok_or_else(Unavailable::nonsense)?;
        let name = name.clone();
        let Some((revision, found)) = self.entry_to_change(&name).await? else { return Ok(None) };
        if let Some(QueueDefinition::Topic { name, .. }) = found {
            let refusal = match change {
                DefinitionChange::Create(_) => QueueRefusal::NameIsTopic(name),
                _ => QueueRefusal::QueueNotFound(name),
            };
            return Ok(Some(Reply::Queue(Err(refusal))));
        }
        let there = match found {
            Some(QueueDefinition::There { options, paused, .. }) => Some((options, paused)),
            _ => None,
        };
        match (change, there) {
            (DefinitionChange::Create(options), Some((known, _))) if known != options => {
                Ok(Some(Reply::Queue(Err(QueueRefusal::QueueExists(name)))))
            }
            (DefinitionChange::Create(options), there) => {
                if revision == 0 {
                    self.definitions.check_new_name()?;
                }
                let paused = there.is_some_and(|(_, paused)| paused);
                let definition = QueueDefinition::There { name, options, paused };
                self.decide(command, definition, revision).await
            }
            (_, None) => Ok(Some(Reply::Queue(Err(QueueRefusal::QueueNotFound(name))))),
            (DefinitionChange::Options(options), Some((known, _))) if known.order != options.order => {
                // Whether each partition could do it is not known before all have.
                Err(Unavailable::Unsupported(ORDER_STAYS))
            }
            (DefinitionChange::Options(options), Some((_, paused))) => {
                self.decide(command, QueueDefinition::There { name, options, paused }, revision).await
            }
            (DefinitionChange::Pause(paused), Some((options, _))) => {
                self.decide(command, QueueDefinition::There { name, options, paused }, revision).await
            }
            (DefinitionChange::Delete, Some(_)) => self.delete(command, name, revision).await,
        }
    }

    /// What there is under a name that is to be changed. `None` when somebody was faster.
    pub(crate) async fn entry_to_change(
        &self,
        name: &QueueName,
    ) -> Result<Option<(u64, Option<QueueDefinition>)>, Unavailable> {
        let (revision, found) = self.definitions.entry(name).await?;
        match found {
            // Whoever began to delete it has not ended.
            Some(QueueDefinition::Going { .. }) => {
                Ok(self.end_deleting(name, revision).await?.map(|ended| (ended, None)))
            }
            found => Ok(Some((revision, found))),
        }
    }

    /// Asks whether it can be done, and if so has it done everywhere.
    async fn decide(
        &self,
        command: Command,
        definition: QueueDefinition,
        behind: u64,
    ) -> Result<Option<Reply>, Unavailable> {
        let reply = match self.ask(ARBITER, command, Duration::ZERO).await {
            // What is to be already needs no judge.
            Err(Unavailable::PartitionStopped { .. })
                if self.definitions.entry(definition.name()).await?.1.as_ref() == Some(&definition) =>
            {
                Reply::Queue(Ok(false))
            }
            reply => reply?,
        };
        match &reply {
            Reply::Queue(Ok(_)) => {}
            Reply::Queue(Err(QueueRefusal::QueueExists(name))) => {
                self.adopt(name, behind).await?;
                return Ok(Some(reply));
            }
            _ => return Ok(Some(reply)),
        }
        let QueueDefinition::There { name, .. } = &definition else { return Err(Unavailable::nonsense()) };
        let name = name.clone();
        // Whatever fails from here on, the arbiter has done it.
        let done = async {
            let Some(revision) = self.put(definition, behind).await? else { return Ok(None) };
            self.wherever_it_goes_on(&name, revision).await?;
            Ok(Some(reply))
        };
        done.await.map_err(|why: Unavailable| partly(&why))
    }

    /// Has a queue everywhere as the arbiter has it. Whoever has asked it may have ended before the bucket had it, and then nobody
    /// could change or delete that queue.
    async fn adopt(&self, name: &QueueName, behind: u64) -> Result<(), Unavailable> {
        let look = LookFor::Queue { name: name.clone() };
        let LookResult::Queue(Some(view)) = self.look_in(ARBITER, look).await? else { return Ok(()) };
        let (name, options, paused) = (name.clone(), Box::new(view.options), view.paused);
        let definition = QueueDefinition::There { name: name.clone(), options, paused };
        match self.put(definition, behind).await? {
            Some(revision) => self.wherever_it_goes_on(&name, revision).await,
            None => Ok(()),
        }
    }

    /// Puts a definition, unless it is that already. `None` when somebody was faster.
    async fn put(&self, definition: QueueDefinition, behind: u64) -> Result<Option<u64>, Unavailable> {
        let (revision, found) = self.definitions.entry(definition.name()).await?;
        if found.as_ref() == Some(&definition) {
            return Ok(Some(revision));
        }
        self.definitions.put(definition, behind).await
    }

    async fn delete(
        &self,
        command: Command,
        name: QueueName,
        behind: u64,
    ) -> Result<Option<Reply>, Unavailable> {
        self.check_all_go_on()?;
        let going = QueueDefinition::Going { name: name.clone() };
        let Some(revision) = self.put(going, behind).await? else { return Ok(None) };
        let deleted = self.have_deleted(command, &name, revision).await;
        deleted.map(Some).map_err(|why| partly(&why))
    }

    /// Has a queue deleted that the bucket says is going. Once no partition has it, that is done, whoever has ended it: under its name
    /// there may be another one by then.
    pub(crate) async fn have_deleted(
        &self,
        command: Command,
        name: &QueueName,
        revision: u64,
    ) -> Result<Reply, Unavailable> {
        let reply = match self.ask(ARBITER, command, Duration::ZERO).await? {
            // It has heard of it before.
            Reply::Queue(Err(QueueRefusal::QueueNotFound(_))) => Reply::Queue(Ok(true)),
            reply => reply,
        };
        self.end_deleting(name, revision).await?;
        Ok(reply)
    }

    /// Sees to it that every partition can end something, before the first does.
    pub(crate) fn check_all_go_on(&self) -> Result<(), Unavailable> {
        (0..self.places.partitions).try_for_each(|partition| self.check_goes_on(partition))
    }

    /// Has a queue deleted everywhere, so that one of its name can be created. `None` when somebody else has ended it, and put something
    /// else since.
    pub(crate) async fn end_deleting(
        &self,
        name: &QueueName,
        revision: u64,
    ) -> Result<Option<u64>, Unavailable> {
        self.everywhere(name, revision).await?;
        self.put(QueueDefinition::Gone { name: name.clone() }, revision).await
    }

    /// Waits until every partition has a revision of a queue.
    pub(crate) async fn everywhere(&self, name: &QueueName, revision: u64) -> Result<(), Unavailable> {
        self.define_in_all(name, revision, false).await
    }

    /// The same, but for partitions with which no node goes on: whoever takes one over has the newest revision before it answers
    /// anybody. What ends a queue is not told so, as the newest revision may be that of another queue of the name by then.
    pub(crate) async fn wherever_it_goes_on(
        &self,
        name: &QueueName,
        revision: u64,
    ) -> Result<(), Unavailable> {
        self.define_in_all(name, revision, true).await
    }

    /// Waits until a partition has a revision of a queue.
    pub(crate) async fn define_in(
        &self,
        partition: u16,
        name: &QueueName,
        revision: u64,
    ) -> Result<(), Unavailable> {
        let ask = Ask::of_partition(partition, What::Define(name.clone(), revision));
        match self.said(partition, &ask, Duration::ZERO).await? {
            NodeReply::Defined => Ok(()),
            _ => Err(Unavailable::nonsense()),
        }
    }

    async fn define_in_all(
        &self,
        name: &QueueName,
        revision: u64,
        passes_stopped: bool,
    ) -> Result<(), Unavailable> {
        if self.definitions.is_everywhere(name, revision) {
            return Ok(());
        }
        let asked = (0..self.places.partitions).map(|partition| async move {
            match self.define_in(partition, name, revision).await {
                Ok(()) => Ok(true),
                Err(Unavailable::PartitionStopped { .. }) if passes_stopped => Ok(false),
                Err(why) => Err(why),
            }
        });
        let mut is_everywhere = true;
        for defined in futures_util::future::join_all(asked).await {
            is_everywhere &= defined?;
        }
        if is_everywhere {
            self.definitions.note_everywhere(name, revision);
        }
        Ok(())
    }
}

/// The options that a command gives to a queue.
fn options_of(command: &Command) -> Option<&QueueOptions> {
    match command.asked() {
        Command::CreateQueue(verb) => Some(&verb.options),
        Command::ChangeQueue(verb) => Some(&verb.options),
        Command::ChangeTopic(verbs::ChangeTopic {
            change: TopicChange::Subscribe { options, .. }, ..
        }) => Some(options),
        _ => None,
    }
}
