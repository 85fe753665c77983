//! Who works at the queues: a processor for each definition that has handlers, swapped as definitions change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use crate::clock::Clock;
use crate::daemon::attempt::Attempts;
use crate::daemon::gauges::Gauges;
use crate::daemon::home::Home;
use crate::daemon::posts::dispatch_of;
use crate::definition::Definition;
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
}

/// A definition, and the processor that does what it says.
struct Post {
    definition: Arc<Definition>,
    /// Whether an operator has told it to pause.
    is_paused: bool,
    work: Option<Work>,
}

struct Work {
    running: Running,
    dispatch: Arc<Dispatch>,
}

/// How a post looks from outside.
#[derive(Clone, Debug)]
pub(crate) struct PostView {
    pub(crate) definition: Arc<Definition>,
    pub(crate) is_paused: bool,
    pub(crate) is_working: bool,
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
        Crew { client, intake, home, gauges, clock, drain, posts: Mutex::default() }
    }

    /// Lets these definitions work, and no others. One that did not change goes on undisturbed; the handlers of one that
    /// did, or is gone, finish what they have begun first.
    pub(crate) async fn replace(&self, definitions: &[Arc<Definition>]) -> Result<(), Error> {
        let mut posts = self.posts.lock().await;
        let mut before = std::mem::take(&mut *posts);
        let mut leaving = Vec::new();
        for definition in definitions {
            let old = before.remove(&definition.name);
            let is_paused = old.as_ref().is_some_and(|post| post.is_paused);
            let post = match old {
                Some(post) if post.definition == *definition => post,
                old => {
                    leaving.extend(old.and_then(|post| post.work));
                    Post { definition: definition.clone(), is_paused, work: None }
                }
            };
            posts.insert(definition.name.clone(), post);
        }
        leaving.extend(before.into_values().filter_map(|post| post.work));
        dismiss_all(leaving).await;
        for post in posts.values_mut() {
            if post.work.is_none() && !post.is_paused {
                post.work = self.man(&post.definition)?;
            }
        }
        Ok(())
    }

    /// Pauses the handlers of a queue, or lets them go on; false when no definition has this name.
    pub(crate) async fn pause(&self, queue: &QueueName, pause: bool) -> Result<bool, Error> {
        let mut posts = self.posts.lock().await;
        let Some(post) = posts.get_mut(queue) else { return Ok(false) };
        post.is_paused = pause;
        match pause {
            true => dismiss_all(post.work.take().into_iter().collect()).await,
            false if post.work.is_none() => post.work = self.man(&post.definition)?,
            false => {}
        }
        Ok(true)
    }

    /// Stops all handlers in order: nothing more is received, what runs ends or is given up after the drain time.
    pub(crate) async fn dismiss(&self) {
        let posts = std::mem::take(&mut *self.posts.lock().await);
        dismiss_all(posts.into_values().filter_map(|post| post.work).collect()).await;
    }

    /// All posts, by queue.
    pub(crate) async fn views(&self) -> Vec<PostView> {
        let view = |post: &Post| PostView {
            definition: post.definition.clone(),
            is_paused: post.is_paused,
            is_working: post.work.as_ref().is_some_and(|work| !work.running.is_finished()),
        };
        self.posts.lock().await.values().map(view).collect()
    }

    /// Starts the processor of a definition; none when clients receive themselves.
    fn man(&self, definition: &Arc<Definition>) -> Result<Option<Work>, Error> {
        if definition.handlers.is_empty() {
            return Ok(None);
        }
        let dispatch = Arc::new(dispatch_of(definition, &self.home, &self.intake, &self.clock)?);
        let attempts = Attempts {
            dispatch: dispatch.clone(),
            rule: definition.rule.clone(),
            gauges: self.gauges.clone(),
            clock: self.clock.clone(),
        };
        let running = Processor::new(self.client.queue(definition.name.as_str())?)
            .concurrency(definition.concurrency)
            .renew_for(definition.renew_for)
            .drain(self.drain)
            .start(attempts);
        Ok(Some(Work { running, dispatch }))
    }
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
