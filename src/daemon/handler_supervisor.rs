//! Who works at the queues: a processor for each definition that has handlers, swapped as definitions change.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::daemon::attempt::Attempts;
use crate::daemon::data_dir::DataDir;
use crate::daemon::error::DaemonError;
use crate::daemon::gauges::Gauges;
use crate::daemon::handler_factory::dispatch_of;
use crate::daemon::handler_factory::site_of;
use crate::definition::Definition;
use crate::definition::HandlerSpec;
use crate::engine::Client;
use crate::engine::QueueView;
use crate::error::Error;
use crate::error::ReceiveError;
use crate::handlers::Dispatch;
use crate::handlers::DispatchPause;
use crate::id::QueueName;
use crate::intake::Intake;
use crate::limits;
use crate::processor::Processor;
use crate::task;
use crate::task::boxed;

/// Who works at the queues.
pub(crate) struct HandlerSupervisor {
    client: Client,
    intake: Intake,
    data_dir: DataDir,
    gauges: Gauges,
    clock: Arc<dyn Clock>,
    drain: Duration,
    /// Queues whose handlers have to pause, as the store says.
    paused: crate::mutex::Mutex<PausedQueues>,
    /// Set when all shall go: nobody begins any more.
    dismissed: CancellationToken,
    /// Set when those that still run have had their time.
    given_up: CancellationToken,
    /// Those that receive nothing more and finish what they have begun.
    leaving: TaskTracker,
    handlers: Mutex<HandlerTable>,
}

/// The handlers of every definition.
#[derive(Default)]
struct HandlerTable {
    /// Whether they may begin. Whoever is told to pause or to go on before does nothing.
    may_begin: bool,
    of_queues: BTreeMap<QueueName, DefinitionHandlers>,
}

impl HandlerTable {
    /// Whether a definition has no handlers at work, though they may begin.
    fn lacks(&self, definition: &Arc<Definition>) -> bool {
        let post = self.of_queues.get(&definition.name);
        self.may_begin && post.is_none_or(|post| post.definition != *definition || post.work.is_none())
    }
}

/// A definition, and the processor that does what it says.
struct DefinitionHandlers {
    definition: Arc<Definition>,
    work: Option<Work>,
}

/// The queues whose handlers pause.
#[derive(Default)]
struct PausedQueues {
    names: BTreeSet<QueueName>,
    /// How often it was noted which they are.
    notes: u64,
}

impl PausedQueues {
    fn note_seen(&mut self, seen: BTreeSet<QueueName>, notes_before: u64) -> Vec<QueueName> {
        if self.notes != notes_before {
            return Vec::new();
        }
        self.notes += 1;
        let changed = self.names.symmetric_difference(&seen).cloned().collect();
        self.names = seen;
        changed
    }
}

struct Work {
    stop: CancellationToken,
    running: JoinHandle<Result<(), ReceiveError>>,
    dispatch: Arc<Dispatch>,
}

impl HandlerSupervisor {
    pub(crate) fn new(
        intake: Intake,
        data_dir: DataDir,
        gauges: Gauges,
        clock: Arc<dyn Clock>,
        drain: Duration,
    ) -> HandlerSupervisor {
        let client = intake.client().clone();
        HandlerSupervisor {
            client,
            intake,
            data_dir,
            gauges,
            clock,
            drain,
            paused: crate::mutex::Mutex::default(),
            dismissed: CancellationToken::new(),
            given_up: CancellationToken::new(),
            leaving: TaskTracker::new(),
            handlers: Mutex::default(),
        }
    }

    /// Lets these definitions work, and no others: if the handlers of one cannot start, all is as it was. One that did not change goes on
    /// undisturbed; the handlers of one that did, or is gone, finish what they have begun, in their own time: the lock of its
    /// workflow keeps the new ones from it.
    pub(crate) async fn replace(&self, definitions: &[Arc<Definition>]) -> Result<(), DaemonError> {
        self.replace_locked(&mut *self.handlers.lock().await, definitions)
    }

    /// Lets handlers begin, those that are there and those that come: not before the daemon has all that it needs.
    pub(crate) async fn begin(&self) -> Result<(), DaemonError> {
        let mut handlers = self.handlers.lock().await;
        handlers.may_begin = true;
        let definitions: Vec<_> = handlers.of_queues.values().map(|post| post.definition.clone()).collect();
        self.replace_locked(&mut handlers, &definitions)
    }

    fn replace_locked(
        &self,
        handlers: &mut HandlerTable,
        definitions: &[Arc<Definition>],
    ) -> Result<(), DaemonError> {
        let mut prepared = BTreeMap::new();
        for definition in definitions.iter().filter(|definition| handlers.lacks(definition)) {
            let queue = &definition.name;
            if !self.is_paused(queue) {
                let refused = |error: Error| DaemonError::Apply {
                    queue: queue.to_string(),
                    problem: error.to_string(),
                };
                prepared.insert(queue.clone(), self.prepare(definition).map_err(refused)?);
            }
        }
        let mut before = std::mem::take(&mut handlers.of_queues);
        for definition in definitions {
            let mut post = match before.remove(&definition.name) {
                Some(post) if post.definition == *definition => post,
                old => {
                    self.dismiss_all(old.and_then(|post| post.work));
                    DefinitionHandlers { definition: definition.clone(), work: None }
                }
            };
            if let Some(shift) = prepared.remove(&definition.name) {
                post.work = shift.map(HandlerShift::start);
            }
            handlers.of_queues.insert(definition.name.clone(), post);
        }
        self.dismiss_all(before.into_values().filter_map(|post| post.work));
        Ok(())
    }

    /// Notes whether the handlers of a queue pause, as its store says; [`HandlerSupervisor::heed`] sees to it.
    pub(crate) fn note_pause(&self, queue: &QueueName, pause: bool) {
        let mut paused = self.paused.lock();
        paused.notes += 1;
        match pause {
            true => paused.names.insert(queue.clone()),
            false => paused.names.remove(queue),
        };
    }

    /// How often it was noted which queues are paused.
    pub(crate) fn pause_notes(&self) -> u64 {
        self.paused.lock().notes
    }

    /// Notes which of all queues were seen to be paused, unless something was noted since the look began; those that have changed. On a
    /// cluster another node may have been told.
    pub(crate) fn note_pauses_seen(&self, queues: &[QueueView], notes_before: u64) -> Vec<QueueName> {
        self.paused.lock().note_seen(paused_of(queues), notes_before)
    }

    /// Whether the handlers of a queue have to pause.
    pub(crate) fn is_paused(&self, queue: &QueueName) -> bool {
        self.paused.lock().names.contains(queue)
    }

    /// Why nothing is handed out to the handlers of a queue right now, and until when by the wall clock.
    pub(crate) fn held_back(&self, queue: &QueueName) -> Option<(Timestamp, DispatchPause)> {
        // While definitions change nobody waits for this.
        let handlers = self.handlers.try_lock().ok()?;
        let elapsed = self.clock.elapsed();
        let held_back = handlers.of_queues.get(queue)?.work.as_ref()?.dispatch.held_back(elapsed)?;
        Some((self.client.wall_now() + held_back.until().saturating_sub(elapsed), held_back))
    }

    /// Does what was noted of a queue: handlers that pause finish what they have begun.
    pub(crate) async fn heed(&self, queue: &QueueName) {
        if let Err(error) = self.heed_pause(queue).await {
            tracing::error!(%error, %queue, "failed to pause handlers, or to let them go on");
        }
    }

    /// Starts handlers that should work and do not: they could not start when they were told to go on, which was said then.
    pub(crate) async fn start_idle(&self) {
        let mut handlers = self.handlers.lock().await;
        for (queue, post) in &mut handlers.of_queues {
            if post.work.is_none()
                && !self.is_paused(queue)
                && let Ok(Some(shift)) = self.prepare(&post.definition)
            {
                tracing::info!(%queue, "handlers that could not start before have started");
                post.work = Some(shift.start());
            }
        }
    }

    async fn heed_pause(&self, queue: &QueueName) -> Result<(), Error> {
        let mut handlers = self.handlers.lock().await;
        if !handlers.may_begin {
            return Ok(());
        }
        let Some(post) = handlers.of_queues.get_mut(queue) else { return Ok(()) };
        match self.is_paused(queue) {
            true => self.dismiss_all(post.work.take()),
            false if post.work.is_none() => {
                post.work = self.prepare(&post.definition)?.map(HandlerShift::start);
            }
            false => {}
        }
        Ok(())
    }

    /// Stops all handlers in order: nothing more is received, what runs ends or is given up after the drain time.
    pub(crate) async fn dismiss(&self) {
        self.dismissed.cancel();
        let of_queues = std::mem::take(&mut self.handlers.lock().await.of_queues);
        self.dismiss_all(of_queues.into_values().filter_map(|post| post.work));
        self.leaving.close();
        tokio::select! {
            () = self.leaving.wait() => return,
            _ = self.client.sleep(self.drain) => {}
        }
        self.given_up.cancel();
        self.leaving.wait().await;
    }

    /// Lets them receive nothing more, give back what they have not begun, and finish the rest in the background.
    fn dismiss_all(&self, works: impl IntoIterator<Item = Work>) {
        for Work { stop, running, dispatch } in works {
            stop.cancel();
            dispatch.turn_away();
            let client = self.client.clone();
            self.leaving.spawn(boxed(async move {
                match running.await {
                    Ok(Ok(())) => {}
                    // What stopped the engine was logged once.
                    Ok(Err(_)) if client.fault().is_some() => {}
                    Ok(Err(error)) => tracing::warn!(%error, "failed to stop handlers in order"),
                    Err(error) => tracing::error!(%error, "failed to stop handlers in order"),
                }
                dispatch.close().await;
            }));
        }
    }

    /// Makes the processor of a definition; none when clients receive themselves.
    fn prepare(&self, definition: &Arc<Definition>) -> Result<Option<HandlerShift>, Error> {
        if definition.handlers.is_empty() || self.dismissed.is_cancelled() {
            return Ok(None);
        }
        let site = site_of(definition, &self.data_dir, &self.intake, &self.clock);
        let dispatch = Arc::new(dispatch_of(definition, &site)?);
        let (rule, gauges) = (definition.rule.clone(), self.gauges.of_queue(&definition.name));
        let attempts = Attempts {
            dispatch: dispatch.clone(),
            rule: rule.clone(),
            gauges: gauges.clone(),
            clock: self.clock.clone(),
        };
        let processor = Processor::new(self.client.queue(definition.name.as_str())?)
            .concurrency(concurrency(definition))
            .renew_for(definition.renew_for)
            .exact_delays(move |attempt| rule.retry_delay(attempt))
            .counting(move |end, count| gauges.count(end, count))
            .taker(Arc::new(attempts.clone()))
            .gate(dispatch.clone());
        Ok(Some(HandlerShift {
            processor,
            attempts,
            dispatch,
            client: self.client.clone(),
            queue: definition.name.clone(),
            stop: CancellationToken::new(),
            given_up: self.given_up.clone(),
        }))
    }
}

/// The handlers of a queue at work.
struct HandlerShift {
    processor: Processor,
    attempts: Attempts,
    dispatch: Arc<Dispatch>,
    client: Client,
    queue: QueueName,
    stop: CancellationToken,
    given_up: CancellationToken,
}

impl HandlerShift {
    fn start(self) -> Work {
        let (stop, dispatch) = (self.stop.clone(), self.dispatch.clone());
        Work { stop, running: task::spawn(self.run()), dispatch }
    }

    /// Works until it is stopped, or the engine is gone. What ends by itself begins again: a queue that was deleted may come again.
    async fn run(self) -> Result<(), ReceiveError> {
        loop {
            let given_up = async {
                self.given_up.cancelled().await;
                Ok(())
            };
            let (attempts, shutdown) = (self.attempts.clone(), self.stop.cancelled());
            let ended = self.processor.run_until_drained(attempts, shutdown, given_up).await;
            let Err(error) = &ended else { return ended };
            if self.stop.is_cancelled() {
                return ended;
            }
            if is_over(error) {
                tracing::warn!(%error, queue = %self.queue, "the handlers of a queue have ended with the engine");
                return ended;
            }
            tracing::warn!(%error, queue = %self.queue, "the handlers of a queue have ended, and begin again");
            tokio::select! {
                slept = self.client.sleep(limits::HANDLERS_PAUSE) => slept?,
                () = self.stop.cancelled() => return ended,
            }
        }
    }
}

/// Whether the engine has ended, and handlers with it.
fn is_over(error: &ReceiveError) -> bool {
    matches!(error, ReceiveError::Unavailable(unavailable) if unavailable.is_over())
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

/// The queues that are paused.
fn paused_of(queues: &[QueueView]) -> BTreeSet<QueueName> {
    queues.iter().filter(|view| view.paused).map(|view| view.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_paused_elsewhere_is_heeded_unless_somebody_was_told_since_the_look_began() {
        let queue = QueueName::new("orders").unwrap();
        let (nothing, all) = (BTreeSet::new(), BTreeSet::from([queue.clone()]));
        let mut paused = PausedQueues::default();
        let orders = std::slice::from_ref(&queue);
        assert_eq!(paused.note_seen(all.clone(), paused.notes), orders);
        assert_eq!(paused.note_seen(all.clone(), paused.notes), [], "that is known");
        let began = paused.notes;
        assert_eq!(paused.note_seen(nothing.clone(), paused.notes), orders, "it was resumed");
        assert_eq!(paused.note_seen(all.clone(), began), [], "the look is older than another");
        let began = paused.notes;
        paused.notes += 1;
        assert_eq!(paused.note_seen(all, began), [], "the look is older than what was noted");
        assert_eq!(paused.names, nothing);
    }
}
