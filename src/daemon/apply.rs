//! Puts a set of definitions in force: queues, rules, schedules, handlers, in this order.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::daemon::daemon_state::DaemonState;
use crate::daemon::error::DaemonError;
use crate::daemon::outbox_of_queue::OutboxOfQueue;
use crate::daemon::reload_problem::ReloadProblem;
use crate::daemon::ticker::Ticking;
use crate::definition::Definition;
use crate::definition::Definitions;
use crate::definition::SubscriptionDefinition;
use crate::engine::Client;
use crate::engine::QueueView;
use crate::error::Error;
use crate::error::QueueError;
use crate::error::QueueRefusal;
use crate::error::TopicError;
use crate::error::TopicRefusal;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::intake::IntakeRule;
use crate::intake::Sources;
use crate::own_queues::SOURCES_QUEUE;
use crate::queue::QueueOptions;

/// Puts a set of definitions in force. What is refused is found before anything changes.
pub(crate) async fn apply(daemon_state: &DaemonState, definitions: Definitions) -> Result<(), DaemonError> {
    let (mut attempts, mut undefined) = (0, None);
    loop {
        attempts += 1;
        match apply_once(daemon_state, definitions.clone(), &mut undefined).await {
            Err(error) if daemon_state.membership.tries_again(&error, attempts) => {}
            applied => {
                let partitions = daemon_state.membership.missing();
                if !partitions.is_empty() {
                    tracing::warn!(
                        ?partitions,
                        "partitions are stopped on every node: what belongs to them waits, and `seriatim cluster status` says why"
                    );
                }
                return applied;
            }
        }
    }
}

/// Tries it once. What queues without a definition were before the first attempt is kept in `undefined`.
async fn apply_once(
    daemon_state: &DaemonState,
    definitions: Definitions,
    undefined: &mut Option<Vec<UndefinedQueue>>,
) -> Result<(), DaemonError> {
    let (client, state_file) = (daemon_state.intake.client(), daemon_state.data_dir.state_file());
    let before = state_file.sources();
    for definition in definitions.iter() {
        check(daemon_state, before.get(definition.name.as_str()), definition).await?;
    }
    let undefined = match undefined {
        Some(undefined) => undefined,
        None => undefined.insert(undefined_queues(daemon_state, &definitions).await?),
    };
    let not_stored = |error| DaemonError::Data(daemon_state.options.data.clone(), error);
    let mut notes = Vec::new();
    if let Err(error) = put_with_notes(daemon_state, &before, definitions, &mut notes).await {
        let stored = state_file.set_sources(before).map_err(not_stored);
        for note in notes {
            take_back(daemon_state, note).await;
        }
        stored?;
        put_back(daemon_state, undefined).await;
        return Err(error);
    }
    let known = client.all_queues().await.map_err(QueueError::from).map_err(Error::from)?;
    state_file.keep_only(&known.into_iter().map(|view| view.name.to_string()).collect()).map_err(not_stored)
}

/// What is noted for the other nodes of a cluster while definitions are put in force.
struct SourceNote {
    queue: QueueName,
    sources: String,
    before: Option<String>,
    /// The revision of the note; `None` if another node has noted the same before, which takes that back itself if it has to.
    revision: Option<u64>,
}

/// Puts definitions in force after it was noted which queues' messages are placed otherwise: for this node, and for the other nodes of a
/// cluster. One that is down meanwhile knows nothing else of it, and would be refused while messages are stored that were placed as it has to.
async fn put_with_notes(
    daemon_state: &DaemonState,
    before: &BTreeMap<String, String>,
    definitions: Definitions,
    notes: &mut Vec<SourceNote>,
) -> Result<(), DaemonError> {
    // Others are told first: what this node has noted for itself it does not tell after a crash.
    note_for_others(daemon_state, before, &definitions, notes).await?;
    let mut now = before.clone();
    now.extend(definitions.iter().map(|definition| (definition.name.to_string(), sources(definition))));
    let stored = daemon_state.data_dir.state_file().set_sources(now);
    stored.map_err(|error| DaemonError::Data(daemon_state.options.data.clone(), error))?;
    put_in_force(daemon_state, definitions).await?;
    // Noted anew, so that no node takes it back that has noted the same and was refused.
    for SourceNote { queue, sources, .. } in notes {
        if let Err(error) = daemon_state.membership.note_sources(queue, sources).await {
            tracing::error!(%queue, %error, "another node that was refused its definition may note that its messages are placed otherwise");
        }
    }
    Ok(())
}

/// Notes the sources that differ from those before.
async fn note_for_others(
    daemon_state: &DaemonState,
    before: &BTreeMap<String, String>,
    definitions: &Definitions,
    notes: &mut Vec<SourceNote>,
) -> Result<(), DaemonError> {
    let membership = &daemon_state.membership;
    let unavailable = |unavailable: Unavailable| DaemonError::Engine(unavailable.into());
    for definition in definitions.iter().filter(|_| membership.is_of_cluster()) {
        let (queue, known, sources) =
            (&definition.name, before.get(definition.name.as_str()), sources(definition));
        if known == Some(&sources) {
            continue;
        }
        let (behind, noted) = membership.sources_of(queue).await.map_err(unavailable)?;
        let is_noted = noted.as_ref() == Some(&sources);
        // A node that begins has nothing to tell of what is noted, nor of a queue that no node can know by other sources.
        if known.is_none()
            && (is_noted
                || (noted.is_none() && look(daemon_state.intake.client(), definition).await?.is_none()))
        {
            continue;
        }
        let revision = match is_noted {
            true => None,
            false => {
                Some(membership.note_sources_behind(queue, &sources, behind).await.map_err(unavailable)?)
            }
        };
        let before = noted.or_else(|| known.cloned());
        notes.push(SourceNote { queue: queue.clone(), sources, before, revision });
    }
    Ok(())
}

/// Takes a note back whose definition is not in force after all.
async fn take_back(daemon_state: &DaemonState, note: SourceNote) {
    let SourceNote { queue, before, revision, .. } = note;
    let Some(revision) = revision else { return };
    let taken_back = daemon_state.membership.take_back_sources(&queue, before.as_deref(), revision).await;
    if let Err(error) = taken_back {
        tracing::error!(%queue, %error, "other nodes take its messages for placed by a definition that was refused");
    }
}

async fn put_in_force(daemon_state: &DaemonState, definitions: Definitions) -> Result<(), DaemonError> {
    let definitions = put_queues(daemon_state, definitions).await?;
    let rule = |definition: &Arc<Definition>| (definition.name.clone(), definition.rule.clone());
    let rules: BTreeMap<_, Arc<IntakeRule>> = definitions.iter().map(rule).collect();
    daemon_state.intake.replace_rules(rules);
    daemon_state
        .ticker
        .replace(definitions.iter().flat_map(|definition| schedules(definition)).collect())
        .await?;
    let outbox = |definition: &Arc<Definition>| {
        let (queue, outbox) = (definition.name.clone(), definition.outbox.clone()?);
        Some(OutboxOfQueue { queue, outbox })
    };
    match daemon_state.outboxes.replace(definitions.iter().filter_map(outbox).collect()).await {
        Err(error) if may_wait(daemon_state, &error) => {
            note_waiting(daemon_state, SOURCES_QUEUE, "no source is copied");
        }
        replaced => replaced?,
    }
    let supervisor = &daemon_state.handler_supervisor;
    // Who is told to pause while it is looked knows better.
    let pause_notes = supervisor.pause_notes();
    let known =
        daemon_state.intake.client().all_queues().await.map_err(QueueError::from).map_err(Error::from)?;
    let changed = supervisor.note_pauses_seen(&known, pause_notes);
    let all: Vec<Arc<Definition>> = definitions.iter().cloned().collect();
    supervisor.replace(&all).await?;
    for queue in &changed {
        supervisor.heed(queue).await;
    }
    daemon_state.loaded_at.store(Arc::new(daemon_state.clock.now()));
    daemon_state.definitions.store(Arc::new(definitions));
    Ok(())
}

/// Makes the queues what the definitions say; the definitions that can be in force. On a full disk a daemon that begins leaves a queue
/// as it is, and a definition out whose queue is not there or has another order.
async fn put_queues(
    daemon_state: &DaemonState,
    definitions: Definitions,
) -> Result<Definitions, DaemonError> {
    let mut left_out = BTreeSet::new();
    for definition in definitions.iter() {
        match put_queue(daemon_state, definition).await {
            Err(DaemonError::Engine(error)) if may_wait(daemon_state, &error) => {
                let stored = look(daemon_state.intake.client(), definition).await?;
                if stored.is_some_and(|view| view.options.order == definition.options.order) {
                    note_waiting(daemon_state, definition.name.as_str(), "its queue stays as it was");
                } else {
                    note_waiting(daemon_state, definition.name.as_str(), "it is not in force");
                    left_out.insert(definition.name.clone());
                }
            }
            put => put?,
        }
    }
    Ok(definitions.without(&left_out))
}

/// Whether no definitions were in force yet.
fn begins(daemon_state: &DaemonState) -> bool {
    **daemon_state.loaded_at.load() == Timestamp::default()
}

/// Whether what was not done may wait for room on the disk: only a daemon that runs drains what is stored.
fn may_wait(daemon_state: &DaemonState, error: &Error) -> bool {
    begins(daemon_state) && error.is_of_full_disk()
}

/// Shows what was not done, beside what else was not.
fn note_waiting(daemon_state: &DaemonState, queue: &str, so: &str) {
    let problem = format!(
        "the disk is nearly full, so that {so} until there is room and the definitions are read again"
    );
    let waiting = DaemonError::Apply { queue: queue.to_owned(), problem };
    tracing::error!("{waiting}");
    let before = (**daemon_state.reload_problem.load()).clone();
    let waiting = ReloadProblem::of(&waiting);
    let all = match before {
        Some(before) => before.and(waiting),
        None => waiting,
    };
    daemon_state.reload_problem.store(Arc::new(Some(all)));
}

/// A queue that has no definition in force, as it is before it has one.
struct UndefinedQueue {
    name: QueueName,
    options: QueueOptions,
    subscription: Option<SubscriptionDefinition>,
}

/// The stored queues that these definitions would be the first for.
async fn undefined_queues(
    daemon_state: &DaemonState,
    definitions: &Definitions,
) -> Result<Vec<UndefinedQueue>, DaemonError> {
    let (client, before) = (daemon_state.intake.client(), daemon_state.definitions.load_full());
    let mut undefined = Vec::new();
    if begins(daemon_state) {
        // It puts nothing back.
        return Ok(undefined);
    }
    for definition in definitions.iter().filter(|definition| before.get(&definition.name).is_none()) {
        let Some(view) = look(client, definition).await? else { continue };
        let mut subscription = definition.subscription.clone();
        if let Some(subscription) = &mut subscription {
            let topic = client.topic(&subscription.topic).map_err(Error::from)?;
            let topic = topic.view().await.map_err(QueueError::from).map_err(Error::from)?;
            let known = topic.into_iter().flat_map(|topic| topic.subscriptions);
            let Some(known) = known.into_iter().find(|known| known.queue == view.name) else { continue };
            subscription.rules = known.rules;
        }
        undefined.push(UndefinedQueue { name: view.name, options: view.options, subscription });
    }
    Ok(undefined)
}

impl UndefinedQueue {
    /// Gives it back what it had.
    async fn put_back(&self, client: &Client) -> Result<(), DaemonError> {
        let options = self.options.clone();
        match &self.subscription {
            Some(subscription) => put_subscription(client, subscription, options).await,
            None => {
                client.put_queue(&self.name, options).await.map_err(Error::from)?;
                Ok(())
            }
        }
    }
}

/// Puts the definitions from before in force again, after others were refused of which some already are, and gives queues that had none
/// what they had. A daemon that begins has none.
async fn put_back(daemon_state: &DaemonState, undefined: &[UndefinedQueue]) {
    let (before, loaded_at) = (daemon_state.definitions.load_full(), daemon_state.loaded_at.load_full());
    if begins(daemon_state) {
        return;
    }
    for queue in undefined {
        if let Err(error) = queue.put_back(daemon_state.intake.client()).await {
            tracing::error!(queue = %queue.name, %error, "a queue has options of a definition that was refused: give it its own again");
        }
    }
    if let Err(error) = put_in_force(daemon_state, Definitions::clone(&before)).await {
        tracing::error!(%error, "failed to put the definitions from before in force again; the next reload tries it");
    }
    daemon_state.loaded_at.store(loaded_at);
}

/// Refuses what would leave stored messages without their place: another order, or another way to find it. A node of a cluster that was
/// down may come with what the others have in force since.
async fn check(
    daemon_state: &DaemonState,
    before: Option<&String>,
    definition: &Definition,
) -> Result<(), DaemonError> {
    let refused = |problem: String| DaemonError::Apply { queue: definition.name.to_string(), problem };
    if let Some(problem) = taken(daemon_state.intake.client(), definition).await? {
        return Err(refused(problem));
    }
    let Some(view) = look(daemon_state.intake.client(), definition).await? else { return Ok(()) };
    if view.counts.stored() == 0 && view.missing_partitions.is_empty() {
        return Ok(());
    }
    let what = if view.options.order != definition.options.order {
        "order"
    } else if before.is_none_or(|before| *before == sources(definition))
        || is_in_force_elsewhere(daemon_state, definition).await?
    {
        return Ok(());
    } else {
        "key or position"
    };
    let stored = view.counts.stored();
    if stored == 0 {
        return Err(refused(format!(
            "its {what} cannot change while partitions of the cluster are stopped that may store messages of it: {:?}",
            view.missing_partitions
        )));
    }
    Err(refused(format!(
        "its {what} cannot change while it stores {}: let its handlers finish them, or purge the queue, \
         or give the new definition another name",
        if stored == 1 { "a message".to_owned() } else { format!("{stored} messages") }
    )))
}

/// Why its queue or its topic cannot be made, if what is stored has the name.
async fn taken(client: &Client, definition: &Definition) -> Result<Option<String>, DaemonError> {
    Ok(match &definition.subscription {
        Some(SubscriptionDefinition { topic, .. }) => {
            let queue = client.queue(topic).map_err(Error::from)?;
            let queue = queue.view_if_any().await.map_err(Error::from)?;
            queue.map(|_| format!("the queue {topic} is stored, so that there cannot be a topic of this name: delete it first"))
        }
        None if definition.name.subscription().is_some() => None,
        None => {
            let topic = client.topic(&definition.name).map_err(Error::from)?;
            let topic = topic.view().await.map_err(QueueError::from).map_err(Error::from)?;
            topic.map(|_| "a topic has this name: delete it first".to_owned())
        }
    })
}

/// Whether another node of the cluster places the messages of a queue by these sources since it has placed them otherwise.
async fn is_in_force_elsewhere(
    daemon_state: &DaemonState,
    definition: &Definition,
) -> Result<bool, DaemonError> {
    let noted = daemon_state.membership.sources_of(&definition.name).await;
    let (_, noted) = noted.map_err(|unavailable| DaemonError::Engine(unavailable.into()))?;
    Ok(noted == Some(sources(definition)))
}

/// Where a definition reads what places a message, in words that are compared after a restart.
fn sources(definition: &Definition) -> String {
    let Sources { key, position, predecessor, message_id } = definition.rule.sources();
    let named = [("key", key), ("position", position), ("after", predecessor), ("message_id", message_id)];
    let described =
        named.iter().filter_map(|(name, source)| Some(format!("{name} from {}", source.as_ref()?)));
    described.collect::<Vec<_>>().join(", ")
}

async fn look(client: &Client, definition: &Definition) -> Result<Option<QueueView>, DaemonError> {
    let queue = client.queue(definition.name.as_str()).map_err(Error::from)?;
    Ok(queue.view_if_any().await.map_err(Error::from)?)
}

async fn put_queue(daemon_state: &DaemonState, definition: &Definition) -> Result<(), DaemonError> {
    let (client, name) = (daemon_state.intake.client(), definition.name.as_str());
    let mut options = definition.options.clone();
    options.history = options.history.or(daemon_state.options.history);
    if let Some(subscription) = &definition.subscription {
        return put_subscription(client, subscription, options).await;
    }
    match client.put_queue(name, options).await {
        Ok(_) => Ok(()),
        Err(QueueError::Refused(QueueRefusal::OrderInUse(_))) => Err(DaemonError::Apply {
            queue: name.to_owned(),
            problem: "its order cannot change while it remembers workflows: purge it, and let it forget \
                      them (`idle.forget_after`, `limits.cursors_max = 0`), or give the new definition \
                      another name"
                .to_owned(),
        }),
        Err(error) => Err(Error::from(error).into()),
    }
}

async fn put_subscription(
    client: &Client,
    subscription: &SubscriptionDefinition,
    options: QueueOptions,
) -> Result<(), DaemonError> {
    let SubscriptionDefinition { topic, name, rules, .. } = subscription;
    let failed = |error: TopicError| match error {
        TopicError::Unavailable(unavailable) => DaemonError::Engine(unavailable.into()),
        full @ TopicError::Refused(TopicRefusal::StorageFull(_)) => DaemonError::Engine(full.into()),
        error => {
            DaemonError::Apply { queue: format!("{topic}/subscriptions/{name}"), problem: error.to_string() }
        }
    };
    let topic = client.create_topic(topic).await.map_err(failed)?;
    topic.put_subscription(name, options, rules.clone()).await.map(drop).map_err(failed)
}

fn schedules(definition: &Definition) -> impl Iterator<Item = Ticking> {
    let queue = definition.name.clone();
    let ticking = move |schedule| Ticking { queue: queue.clone(), schedule };
    definition.schedules.clone().into_iter().map(ticking)
}
