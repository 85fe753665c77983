//! The engine's process: opens the file, feeds and handles, and tells how far it is. It is killed and started again.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use seriatim::Queue;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::demo::git::PathChange;
use crate::demo::git::Repository;
use crate::demo::git::TreeEntry;
use crate::demo::replay::error::ReplayError;
use crate::demo::replay::feed::feed;
use crate::demo::replay::feed::queue_options;
use crate::demo::replay::handle::ReplayHandler;
use crate::demo::replay::handle::WORKERS;
use crate::demo::replay::path_state::PathState;
use crate::demo::replay::plan::EnginePlan;
use crate::demo::replay::progress::ReplayOutcome;
use crate::demo::replay::progress::ReplayProgress;
use crate::demo::replay::replay_store::ReplayStore;

/// How often the supervisor is told.
const TELL_EVERY: Duration = Duration::from_millis(20);

/// Workflows one look lists.
const PAGE: usize = 1_000;

/// Runs until everything is applied, or until this process is killed.
pub(crate) fn run_engine_process(plan: EnginePlan) -> Result<(), ReplayError> {
    end_with_the_supervisor()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(ReplayError::system("start the runtime"))?;
    let repository = Repository::open(&plan.repository)?;
    if repository.head() != plan.head {
        return Err(ReplayError::HeadMoved(plan.repository));
    }
    let changes = repository.changes()?;
    let tree = repository.head_tree()?;
    runtime.block_on(run(&plan, changes, &tree))
}

/// Ends this process when its supervisor is gone, however that ended: the pipe to it breaks.
fn end_with_the_supervisor() -> Result<(), ReplayError> {
    let watch = || {
        let mut nothing = [0];
        while matches!(std::io::stdin().lock().read(&mut nothing), Ok(count) if count > 0) {}
        eprintln!("seriatim: {}", ReplayError::Alone);
        std::process::exit(3);
    };
    let thread = std::thread::Builder::new().name("supervisor-watch".to_owned()).spawn(watch);
    thread.map(drop).map_err(ReplayError::system("watch the supervisor"))
}

async fn run(
    plan: &EnginePlan,
    changes: Vec<PathChange>,
    tree: &BTreeMap<Vec<u8>, TreeEntry>,
) -> Result<(), ReplayError> {
    let store = ReplayStore::open(plan).await?;
    let queue = create_queue(&store, plan).await?;
    let handler = Arc::new(ReplayHandler {
        queue: queue.clone(),
        handling: plan.handling,
        failures: plan.failures,
        seed: plan.seed,
        on_cluster: plan.node.is_some(),
        applied: AtomicU64::new(0),
    });
    let (finish, finished) = watch::channel(false);
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        workers.spawn(handler.clone().work(finished.clone()));
    }
    // Another node may be the one that sends.
    let feeds = plan.node.as_ref().is_none_or(|node| node.feeds);
    let changes = if feeds { changes } else { Vec::new() };
    let mut sender = tokio::spawn(feed(queue.clone(), changes, plan.handling, plan.node.is_some()));
    let mut every = tokio::time::interval(TELL_EVERY);
    let mut sent = false;
    loop {
        tokio::select! {
            _ = every.tick() => {
                match report(&queue).await {
                    Ok(0) if sent && feeds => break,
                    Err(error) if plan.node.is_some() && error.passes() => {}
                    reported => drop(reported?),
                }
            }
            result = &mut sender, if !sent => {
                result.map_err(|error| ReplayError::system("send")(error.into()))??;
                sent = true;
            }
            Some(result) = workers.join_next() => {
                result.map_err(|error| ReplayError::system("handle")(error.into()))??;
            }
        }
    }
    finish.send_replace(true);
    while let Some(result) = workers.join_next().await {
        result.map_err(|error| ReplayError::system("handle")(error.into()))??;
    }
    describe(&ReplayProgress::Done(outcome(&queue, tree).await?))?;
    drop((queue, handler));
    store.close().await;
    Ok(())
}

/// Creates the queue, or finds it as it was created before.
async fn create_queue(store: &ReplayStore, plan: &EnginePlan) -> Result<Queue, ReplayError> {
    loop {
        let created = store.client().create_queue("changes", queue_options(plan.handling)).await;
        match created.map_err(ReplayError::from) {
            Err(error) if plan.node.is_some() && error.passes() => {}
            created => return created,
        }
    }
}

/// Tells the supervisor how far it is, and returns how many messages are left.
async fn report(queue: &Queue) -> Result<u64, ReplayError> {
    let counts = queue.view().await?.counts;
    describe(&ReplayProgress::Going { applied: counts.completed, deferred: counts.early + counts.retry })?;
    Ok(counts.stored())
}

fn describe(progress: &ReplayProgress) -> Result<(), ReplayError> {
    progress.report().map_err(ReplayError::system("tell the supervisor"))
}

/// Reads every workflow's state and compares it with the tree.
async fn outcome(queue: &Queue, tree: &BTreeMap<Vec<u8>, TreeEntry>) -> Result<ReplayOutcome, ReplayError> {
    let mut outcome = ReplayOutcome {
        applied: 0,
        workflows: 0,
        wrong_predecessors: 0,
        failures_injected: 0,
        tree_equal: false,
    };
    let mut held = BTreeMap::new();
    let mut last = None;
    loop {
        let page = queue.workflows(last.as_ref(), PAGE).await?;
        let Some(end) = page.last() else { break };
        last = end.workflow_id.clone();
        for id in page.into_iter().filter_map(|view| view.workflow_id) {
            let state = queue.workflow(&id)?.state().await?.unwrap_or_default();
            let state: PathState =
                serde_json::from_slice(&state).map_err(|_| ReplayError::BadState(id.to_string()))?;
            outcome.applied += state.applied;
            outcome.workflows += 1;
            outcome.wrong_predecessors += state.wrong;
            outcome.failures_injected += state.failed;
            if let Some(entry) = state.entry() {
                held.insert(state.last.path.clone(), entry.clone());
            }
        }
    }
    outcome.tree_equal = held == *tree;
    Ok(outcome)
}
