//! What happens by itself while the daemon runs: definitions are read again, and troubles are looked after.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use notify::RecursiveMode;
use notify::Watcher;
use tokio::signal::unix::Signal;
use tokio::signal::unix::SignalKind;
use tokio::signal::unix::signal;
use tokio::sync::mpsc;

use crate::api::WireTime;
use crate::api::plural::spanned;
use crate::daemon::apply::apply;
use crate::daemon::blocked_monitor::Moment;
use crate::daemon::daemon_state::DaemonState;
use crate::daemon::error::DaemonError;
use crate::daemon::notify::notify;
use crate::daemon::reload_problem::ReloadProblem;
use crate::daemon::systemd;
use crate::definition::Definitions;
use crate::engine::Client;
use crate::engine::Event;
use crate::engine::EventKind;
use crate::engine::EventsLag;
use crate::engine::HoldCause;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;
use crate::processor::joined;
use crate::schedule::forget_time_zones;
use crate::task;

/// Why definitions are read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReloadReason {
    /// Somebody has asked for it: what their queues and time zones have become since counts, too.
    Asked,
    /// Something has happened to their files.
    FilesChanged,
}

/// Reads the definitions again, and keys and certificate. What is wrong with one of the two keeps nothing of the other back: a key that
/// was taken out opens nothing more, whatever somebody has just written into a definition.
async fn reload(daemon_state: &DaemonState, reason: ReloadReason) -> Result<(), DaemonError> {
    let _one_at_a_time = daemon_state.reloading.lock().await;
    // First: definitions can take long, and whoever asked may be gone before they are in force.
    let credentials = daemon_state.change_locks();
    let credentials = credentials.map_err(|error| DaemonError::Credentials(error.to_string()));
    if let Err(error) = &credentials {
        tracing::error!("{error}");
    }
    let definitions = reload_definitions(daemon_state, reason).await;
    match (definitions, credentials) {
        (Err(definitions), Err(credentials)) => Err(DaemonError::Several(vec![definitions, credentials])),
        (definitions, credentials) => definitions.and(credentials),
    }
}

/// The same for who asks for it, and may be gone before it is done: a reload that is dropped half way leaves queues as they are to be, and
/// handlers as they were.
pub(crate) async fn reload_whole(daemon_state: &Arc<DaemonState>) -> Result<(), DaemonError> {
    let daemon_state = daemon_state.clone();
    joined(task::spawn(async move { reload(&daemon_state, ReloadReason::Asked).await }).await)
}

/// A whole valid set takes the place of the old one, or nothing changes and the reason is kept.
async fn reload_definitions(daemon_state: &DaemonState, reason: ReloadReason) -> Result<(), DaemonError> {
    if reason == ReloadReason::Asked {
        forget_time_zones();
    }
    let loaded = Definitions::load(&daemon_state.options.definitions).map_err(DaemonError::from);
    let applied = match loaded {
        Ok(definitions) => {
            let changes = daemon_state.definitions.load().changes(&definitions);
            let names =
                |names: &[QueueName]| names.iter().map(QueueName::as_str).collect::<Vec<_>>().join(", ");
            let (added, changed) = (names(&changes.added), names(&changes.changed));
            let removed = names(&changes.removed);
            // What was refused before may have been put in force in part.
            let was_refused = daemon_state.reload_problem.load().is_some();
            let is_in_force = changes.is_empty() && !was_refused && reason == ReloadReason::FilesChanged;
            let applied = match is_in_force {
                true => Ok(()),
                false => apply(daemon_state, definitions).await,
            };
            if applied.is_ok() && !changes.is_empty() {
                tracing::info!(added, changed, removed, "new definitions are in force");
            }
            applied
        }
        Err(error) => Err(error),
    };
    match &applied {
        Ok(()) => {
            if daemon_state.reload_problem.swap(Arc::new(None)).is_some() {
                tracing::info!("nothing is wrong with the definitions any more");
            }
        }
        Err(error) => {
            let problem = ReloadProblem::of(error);
            tracing::error!(
                "the definitions in the folder cannot be put in force, those from before stay: {}",
                problem.text
            );
            daemon_state.reload_problem.store(Arc::new(Some(problem)));
        }
    }
    applied
}

/// Reasons to read the definitions again: one of them changes, or the process gets SIGHUP.
pub(crate) struct ReloadSignals {
    files: mpsc::Receiver<()>,
    hang_up: Signal,
    folder: PathBuf,
    /// Every name of the folder, shared with who is told of changes.
    names: Arc<ArcSwap<Vec<PathBuf>>>,
    watcher: notify::Result<notify::RecommendedWatcher>,
}

impl ReloadSignals {
    /// Listens from now on: before the daemon says that it is ready, or SIGHUP would still end it.
    ///
    /// # Errors
    /// [`DaemonError::Signals`].
    pub(crate) fn listen(folder: &Path) -> Result<ReloadSignals, DaemonError> {
        let (sender, files) = mpsc::channel(1);
        // By the same name as in what is said of its entry in the folder above it.
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let names = Arc::new(ArcSwap::from_pointee(names(&folder)));
        let watcher = watch(&folder, names.clone(), sender);
        let hang_up = signal(SignalKind::hangup()).map_err(DaemonError::Signals)?;
        Ok(ReloadSignals { files, hang_up, folder, names, watcher })
    }

    async fn next(&mut self) -> Option<ReloadReason> {
        let reason = tokio::select! {
            Some(()) = self.files.recv() => {
                settle(&mut self.files).await;
                ReloadReason::FilesChanged
            }
            Some(()) = self.hang_up.recv() => ReloadReason::Asked,
            else => return None,
        };
        self.watch_anew();
        Some(reason)
    }

    /// Watches what has the folder's name now: what was watched may be gone, or have another name. What happens meanwhile is seen,
    /// because the definitions are read after it.
    fn watch_anew(&mut self) {
        let Ok(watcher) = &mut self.watcher else { return };
        self.names.store(Arc::new(names(&self.folder)));
        // Of what is gone nothing is watched any more.
        let _ = watcher.unwatch(&self.folder);
        if let Err(error) = watcher.watch(&self.folder, RecursiveMode::NonRecursive) {
            tracing::warn!(%error, "the folder of definitions cannot be watched until it is there again");
        }
    }
}

/// Reads the definitions again whenever there is a reason to.
pub(crate) async fn follow_files(daemon_state: Arc<DaemonState>, mut changes: ReloadSignals) {
    if let Err(error) = &changes.watcher {
        tracing::warn!(%error, "definitions are read again on SIGHUP only: their folder cannot be watched");
    }
    while let Some(reason) = changes.next().await {
        // The error is kept and logged where it happens.
        let _ = reload(&daemon_state, reason).await;
    }
}

fn watch(
    folder: &Path,
    names: Arc<ArcSwap<Vec<PathBuf>>>,
    sender: mpsc::Sender<()>,
) -> notify::Result<notify::RecommendedWatcher> {
    let notify = move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| is_change(&names.load(), &event)) {
            // One that waits already stands for this one too.
            let _ = sender.try_send(());
        }
    };
    let mut watcher = notify::recommended_watcher(notify)?;
    watcher.watch(folder, RecursiveMode::NonRecursive)?;
    // Who takes the folder away, or puts another in its place, is seen from above.
    if let Some(Err(error)) = folder.parent().map(|parent| watcher.watch(parent, RecursiveMode::NonRecursive))
    {
        tracing::debug!(%error, "failed to watch what becomes of the folder of definitions");
    }
    Ok(watcher)
}

/// Every name under which an operating system may speak of a folder: as it was given, or, as macOS does, without links on the way
/// to it, or with none at all.
fn names(folder: &Path) -> Vec<PathBuf> {
    let entry =
        folder.parent().and_then(|parent| Some(parent.canonicalize().ok()?.join(folder.file_name()?)));
    std::iter::once(folder.to_owned()).chain(entry).chain(folder.canonicalize().ok()).collect()
}

/// Whether definitions may have changed: one of them, the folder, or what a volume of Kubernetes puts all of them in, whose names
/// begin with two dots; or what has happened is not known.
fn is_change(names: &[PathBuf], event: &notify::Event) -> bool {
    let is_definition = |path: &PathBuf| {
        let is_toml = path.extension().is_some_and(|extension| extension == "toml");
        // Handlers run in this folder, and may write what they like beside the definitions.
        is_toml || path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".."))
    };
    let concerns = |path: &PathBuf| {
        let of = |folder: &PathBuf| {
            path == folder || path.parent() == Some(folder.as_path()) && is_definition(path)
        };
        names.iter().any(of)
    };
    event.need_rescan() || !event.kind.is_access() && event.paths.iter().any(concerns)
}

/// Waits until nothing has changed for a moment: an editor writes a file in several steps.
async fn settle(changes: &mut mpsc::Receiver<()>) {
    while let Ok(Some(())) = tokio::time::timeout(limits::RELOAD_SETTLES, changes.recv()).await {}
}

/// Watches workflows in trouble, and notifies whom the definitions name.
pub(crate) async fn follow_troubles(daemon_state: Arc<DaemonState>) {
    let client = daemon_state.intake.client().clone();
    let mut events = client.events();
    let mut ticks = tokio::time::interval(limits::BLOCKED_MONITOR_INTERVAL);
    let mut watch = TroubleWatch::default();
    loop {
        tokio::select! {
            // After a fault there is nothing to look at, and nobody shall take the daemon for alive.
            _ = client.ended() => return,
            event = events.next() => match event {
                Some(Ok(event)) => {
                    log(&client, &event).await;
                    daemon_state.blocked_monitor.note(&event, Moment::of(&client));
                }
                Some(Err(EventsLag(missed))) => {
                    tracing::warn!(missed, "events came faster than they could be logged: lines of attempts, holds and dead letters may be missing");
                    watch.is_walked = false;
                }
                None => return,
            },
            _ = ticks.tick() => watch.look(&daemon_state, &client).await,
        }
    }
}

/// Says that the daemon is alive as long as it is. It waits for nothing else that the daemon does: one look that takes long is no death.
pub(crate) async fn stay_alive(daemon_state: Arc<DaemonState>) {
    let (client, mut ticks) =
        (daemon_state.intake.client(), tokio::time::interval(limits::BLOCKED_MONITOR_INTERVAL));
    loop {
        tokio::select! {
            biased;
            _ = client.ended() => return,
            _ = ticks.tick() => {}
        }
        // An engine that hangs is as good as dead: it has to answer first. Those of a cluster may have to wait for its servers, and
        // other partitions than those go on: that this is said tells that the process still runs what is to be done.
        if daemon_state.membership.is_of_cluster() || client.next_due().await.is_ok() {
            systemd::alive();
        }
    }
}

/// How far it was looked for troubles.
#[derive(Default)]
struct TroubleWatch {
    is_walked: bool,
    looks: u64,
    /// The partitions that were looked after here at the last look.
    partitions: Vec<u16>,
}

impl TroubleWatch {
    async fn look(&mut self, daemon_state: &Arc<DaemonState>, client: &Client) {
        let DaemonState { membership, blocked_monitor, clock, .. } = &**daemon_state;
        let partitions = membership.partitions();
        let has_changed = partitions != self.partitions;
        // What came with a partition was another node's to know, and for some there was no room.
        self.is_walked = self.is_walked && !has_changed && !blocked_monitor.takes_overlooked();
        self.partitions = partitions;
        if !self.is_walked {
            self.is_walked = blocked_monitor.walk(client, membership, Moment::of(client)).await.is_ok();
        }
        let pause_notes = daemon_state.handler_supervisor.pause_notes();
        let all_queues = client.all_queues().await.ok();
        // A partition that waits for its log keeps the whole from being seen; who is paused is known of each part.
        let of_parts = match &all_queues {
            Some(_) => None,
            // None at all is seen where no part answers, and says nothing.
            None => membership.queues().await.filter(|queues| !queues.is_empty()),
        };
        if let Some(seen) = all_queues.as_ref().or(of_parts.as_ref()) {
            // Somebody may have paused or resumed them elsewhere.
            for queue in daemon_state.handler_supervisor.note_pauses_seen(seen, pause_notes) {
                daemon_state.handler_supervisor.heed(&queue).await;
            }
            daemon_state.handler_supervisor.start_idle().await;
        }
        if let Some(queues) = all_queues {
            daemon_state.rates.note(clock.elapsed(), &queues);
            if let Err(error) = daemon_state.gaps.look(client, membership, &queues).await {
                tracing::debug!(%error, "failed to count the workflows that wait for a predecessor");
            }
        }
        if let Err(error) = blocked_monitor.look_again(client, membership, Moment::of(client)).await {
            tracing::warn!(%error, "failed to look at the workflows that stand still");
        }
        notify(daemon_state).await;
        self.looks += 1;
        if (has_changed || self.looks.is_multiple_of(limits::LOOKS_BETWEEN_SCHEDULES))
            && let Err(error) = daemon_state.ticker.see_to().await
        {
            tracing::error!(%error, "failed to look after the schedules");
        }
    }
}

/// One line for whatever keeps a workflow from going on: where, why, and what happens next.
async fn log(client: &Client, event: &Event) {
    let (queue, workflow) = (event.queue.as_str(), event.workflow.as_ref().map(WorkflowId::as_str));
    let sequence = event.sequence_number.map(SequenceNumber::get);
    match &event.kind {
        EventKind::Blocked { until, reason } => {
            let next = format!("it is tried again at {}", WireTime(*until));
            tracing::warn!(queue, workflow, sequence, cause = reason, next, "an attempt failed");
        }
        EventKind::Held { cause, reason } => {
            let held = cause.kind().as_str();
            let next = after_hold(cause);
            tracing::warn!(queue, workflow, sequence, held, cause = reason, next, "a workflow is held");
        }
        EventKind::Gap { since } => {
            let (since, missing) = (WireTime(*since).to_string(), missing(client, event).await);
            let next = "send it, or see `seriatim gap show`: declare it void, or skip it";
            tracing::warn!(queue, workflow, since, missing, next, "a predecessor has not come in time");
        }
        EventKind::GapSkipped { from, to } => {
            let missing = spanned("position", *from, *to);
            let next = "what still comes there is dead-lettered";
            tracing::warn!(queue, workflow, missing, next, "what was missing is given up");
        }
        EventKind::DeadLettered { reason } => {
            let next = "redrive or purge it";
            tracing::warn!(queue, workflow, sequence, cause = reason, next, "a message was dead-lettered");
        }
        _ => {}
    }
}

/// What helps a workflow that is held, for each cause.
fn after_hold(cause: &HoldCause) -> &'static str {
    match cause {
        HoldCause::Operator => "nothing by itself: resume it",
        HoldCause::Exhausted(_) => "nothing by itself: retry, skip or resume it",
        HoldCause::Gap => {
            "it goes on when what is missing comes; or declare that void, skip the gap, or resume the workflow"
        }
        HoldCause::Predecessor(_) => "nothing by itself: resume it, or resume it with --redrive",
        HoldCause::Quarantine(_) => {
            "what is sent to it is dead-lettered: resume it, or resume it with --redrive"
        }
        HoldCause::Redriving => "it resumes by itself when its dead letters are back in place",
    }
}

/// What a workflow waits for, as far as a look tells: its queue's policy may have given it up already.
async fn missing(client: &Client, event: &Event) -> Option<String> {
    let queue = client.queue(event.queue.as_str()).ok()?;
    let view = queue.workflow(event.workflow.as_ref()?.as_str()).ok()?.view().await.ok()??;
    let gap = view.gap?;
    match (gap.first_missing, gap.first_waiting, gap.missing_predecessor) {
        (Some(first), waiting, _) => Some(spanned(
            "position",
            first,
            waiting.map_or(first, |waiting| waiting.saturating_sub(1).max(first)),
        )),
        (None, _, predecessor) => predecessor.map(|id| format!("message {id:?}")),
    }
}

#[cfg(test)]
mod tests {
    use notify::event::AccessKind;
    use notify::event::Flag;
    use notify::event::RemoveKind;

    use super::*;

    #[test]
    fn definitions_are_read_again_when_they_may_have_changed_and_not_for_what_handlers_write() {
        let folder = PathBuf::from("/etc/seriatim/workflows");
        let names = std::slice::from_ref(&folder);
        let removed =
            |path: &str| notify::Event::new(notify::EventKind::Remove(RemoveKind::Any)).add_path(path.into());
        for path in ["", "/orders.toml", "/..data", "/..2027_01_31"] {
            assert!(is_change(names, &removed(&format!("/etc/seriatim/workflows{path}"))), "{path}");
        }
        for path in ["/etc/seriatim/workflows/log", "/etc/seriatim/keys.toml", "/etc/seriatim/..data"] {
            assert!(!is_change(names, &removed(path)), "{path}");
        }
        let read = notify::EventKind::Access(AccessKind::Read);
        assert!(!is_change(names, &notify::Event::new(read).add_path(folder.join("orders.toml"))));
        let overflown = notify::Event::new(notify::EventKind::Other).set_flag(Flag::Rescan);
        assert!(is_change(names, &overflown), "nobody knows what was missed");
    }

    #[test]
    fn a_change_is_seen_by_whatever_name_of_the_folder_it_is_told() {
        let root = tempfile::TempDir::new().unwrap();
        let path = root.path().canonicalize().unwrap();
        for folder in ["real", "real/first", "real/second"] {
            std::fs::create_dir(path.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(path.join("real"), path.join("link")).unwrap();
        std::os::unix::fs::symlink(path.join("real/first"), path.join("real/workflows")).unwrap();
        let names = names(&path.join("link/workflows"));
        let is_seen = |changed: &str| {
            let event = notify::Event::new(notify::EventKind::Remove(RemoveKind::Any));
            is_change(&names, &event.add_path(path.join(changed)))
        };
        for changed in ["link/workflows/orders.toml", "real/workflows", "real/first/orders.toml"] {
            assert!(is_seen(changed), "{changed}");
        }
        assert!(!is_seen("real/second/orders.toml"));
    }

    #[test]
    fn a_skip_is_proposed_only_where_the_head_can_be_skipped() {
        let number = SequenceNumber::new(1);
        assert!(after_hold(&HoldCause::Exhausted(number)).contains("retry, skip"));
        let others = [
            HoldCause::Operator,
            HoldCause::Gap,
            HoldCause::Predecessor(number),
            HoldCause::Quarantine(number),
            HoldCause::Redriving,
        ];
        for cause in others {
            let next = after_hold(&cause);
            assert!(!next.contains("retry") && !next.contains("skip or"), "{cause:?}: {next}");
        }
    }
}
