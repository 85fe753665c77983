//! Who works at the queues: a processor for each definition that has handlers, swapped as definitions change.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::sync::Mutex;

use crate::clock::Clock;
use crate::daemon::attempt::Attempts;
use crate::daemon::gauges::Gauges;
use crate::daemon::home::Home;
use crate::daemon::posts::dispatch_of;
use crate::daemon::posts::site_of;
use crate::definition::Definition;
use crate::definition::HandlerSpec;
use crate::engine::Client;
use crate::error::Error;
use crate::handlers::Dispatch;
use crate::id::QueueName;
use crate::intake::Intake;
use crate::processor::Processor;
use crate::processor::Running;

/// Who works at the queues.
pub(crate) struct Crew {
    client: Client,
    intake: Intake,
    home: Home,
    gauges: Gauges,
    clock: Arc<dyn Clock>,
    drain: Duration,
    posts: Mutex<BTreeMap<QueueName, Post>>,
    /// Queues whose handlers an operator has told to pause.
    paused: std::sync::Mutex<BTreeSet<QueueName>>,
}

/// A definition, and the processor that does what it says.
struct Post {
    definition: Arc<Definition>,
    work: Option<Work>,
}

struct Work {
    running: Running,
    dispatch: Arc<Dispatch>,
}

impl Crew {
    pub(crate) fn new(
        intake: Intake,
        home: Home,
        gauges: Gauges,
        clock: Arc<dyn Clock>,
        drain: Duration,
    ) -> Crew {
        let client = intake.client().clone();
        Crew {
            client,
            intake,
            home,
            gauges,
            clock,
            drain,
            posts: Mutex::default(),
            paused: std::sync::Mutex::default(),
        }
    }

    /// Lets these definitions work, and no others. One that did not change goes on undisturbed; the handlers of one that
    /// did, or is gone, finish what they have begun first.
    pub(crate) async fn replace(&self, definitions: &[Arc<Definition>]) -> Result<(), Error> {
        let mut posts = self.posts.lock().await;
        let mut before = std::mem::take(&mut *posts);
        let mut leaving = Vec::new();
        for definition in definitions {
            let old = before.remove(&definition.name);
            let post = match old {
                Some(post) if post.definition == *definition => post,
                old => {
                    leaving.extend(old.and_then(|post| post.work));
                    Post { definition: definition.clone(), work: None }
                }
            };
            posts.insert(definition.name.clone(), post);
        }
        leaving.extend(before.into_values().filter_map(|post| post.work));
        dismiss_all(leaving).await;
        for (queue, post) in posts.iter_mut() {
            if post.work.is_none() && !self.is_paused(queue) {
                post.work = self.man(&post.definition)?;
            }
        }
        Ok(())
    }

    /// Notes that the handlers of a queue shall pause, or go on; [`Crew::heed`] sees to it.
    pub(crate) fn note_pause(&self, queue: &QueueName, pause: bool) {
        let mut paused = self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        match pause {
            true => paused.insert(queue.clone()),
            false => paused.remove(queue),
        };
    }

    /// Whether the handlers of a queue are told to pause.
    pub(crate) fn is_paused(&self, queue: &QueueName) -> bool {
        self.paused.lock().unwrap_or_else(PoisonError::into_inner).contains(queue)
    }

    /// Does what was noted of a queue: handlers that pause finish what they have begun.
    pub(crate) async fn heed(&self, queue: &QueueName) -> Result<(), Error> {
        let mut posts = self.posts.lock().await;
        let Some(post) = posts.get_mut(queue) else { return Ok(()) };
        match self.is_paused(queue) {
            true => dismiss_all(post.work.take().into_iter().collect()).await,
            false if post.work.is_none() => post.work = self.man(&post.definition)?,
            false => {}
        }
        Ok(())
    }

    /// Stops all handlers in order: nothing more is received, what runs ends or is given up after the drain time.
    pub(crate) async fn dismiss(&self) {
        let posts = std::mem::take(&mut *self.posts.lock().await);
        dismiss_all(posts.into_values().filter_map(|post| post.work).collect()).await;
    }

    /// Starts the processor of a definition; none when clients receive themselves.
    fn man(&self, definition: &Arc<Definition>) -> Result<Option<Work>, Error> {
        if definition.handlers.is_empty() {
            return Ok(None);
        }
        let site = site_of(definition, &self.home, &self.intake, &self.clock);
        let dispatch = Arc::new(dispatch_of(definition, &site)?);
        let attempts = Attempts {
            dispatch: dispatch.clone(),
            rule: definition.rule.clone(),
            gauges: self.gauges.clone(),
            clock: self.clock.clone(),
        };
        let running = Processor::new(self.client.queue(definition.name.as_str())?)
            .concurrency(concurrency(definition))
            .renew_for(definition.renew_for)
            .drain(self.drain)
            .start(attempts);
        Ok(Some(Work { running, dispatch }))
    }
}

/// How many messages the handlers of a definition can really have at once: what programs that run on have no room for would
/// wait under a lock, and be counted unstarted.
fn concurrency(definition: &Definition) -> usize {
    let room = definition.handlers.iter().map(|handler| match &handler.spec {
        HandlerSpec::Persistent { processes, in_flight_max, .. } => processes.saturating_mul(*in_flight_max),
        _ => usize::MAX,
    });
    // A definition with several handlers cannot tell beforehand whose message it will be.
    room.min().unwrap_or(usize::MAX).min(definition.concurrency)
}

/// Lets all of them end together.
async fn dismiss_all(works: Vec<Work>) {
    let ending = works.into_iter().map(|Work { running, dispatch }| async move {
        if let Err(error) = running.stop().await {
            tracing::warn!(%error, "stop handlers");
        }
        dispatch.close().await;
    });
    futures_util::future::join_all(ending).await;
}
