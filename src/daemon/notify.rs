//! Tells somebody when a workflow stands still for longer than its definition allows, and when it goes on again.

use std::sync::Arc;

use serde_json::Value;
use serde_json::json;

use crate::api::WireTime;
use crate::daemon::blocked_monitor::BlockedWorkflow;
use crate::daemon::blocked_monitor::Recovery;
use crate::daemon::daemon_state::DaemonState;
use crate::daemon::handler_factory::notifier_of;
use crate::daemon::handler_factory::site_of;
use crate::definition::Definition;
use crate::id::QueueName;
use crate::id::WorkflowId;
use crate::task;

/// Sends a notification for each workflow that has been blocked for too long and has none yet, and for those that go on since, once
/// that has arrived. Who could not be reached is notified with the next look.
pub(crate) async fn notify(daemon_state: &Arc<DaemonState>) {
    let elapsed = daemon_state.intake.client().elapsed();
    let definitions = daemon_state.definitions.load_full();
    for definition in definitions.iter() {
        let Some(notify) = &definition.notify else { continue };
        for (workflow, trouble) in
            daemon_state.blocked_monitor.take_unreported(&definition.name, notify.after, elapsed)
        {
            let (daemon_state, definition) = (daemon_state.clone(), definition.clone());
            let mut notice =
                NoticeUnderWay { daemon_state, definition, workflow, trouble, has_arrived: false };
            task::spawn(async move { notice.send().await });
        }
    }
    for recovery in daemon_state.blocked_monitor.take_recovered() {
        let Some(definition) = definitions.get(&recovery.queue).cloned() else { continue };
        let daemon_state = daemon_state.clone();
        task::spawn(async move {
            let (workflow, trouble) = (&recovery.workflow, &recovery.trouble);
            let document = recovered(&recovery);
            let id = id("recovered", (&recovery.queue, workflow), trouble);
            if let Err(why) = send(&daemon_state, &definition, &id, &document).await {
                tracing::warn!(queue = %recovery.queue, %workflow, why, "failed to notify that a workflow goes on again");
                daemon_state.blocked_monitor.put_recovery(recovery);
            }
        });
    }
}

/// A notice that is being sent. Whichever way that ends, it is noted when this is dropped.
struct NoticeUnderWay {
    daemon_state: Arc<DaemonState>,
    definition: Arc<Definition>,
    workflow: WorkflowId,
    trouble: BlockedWorkflow,
    has_arrived: bool,
}

impl NoticeUnderWay {
    async fn send(&mut self) {
        let NoticeUnderWay { daemon_state, definition, workflow, trouble, has_arrived } = self;
        let document = blocked(definition, workflow, trouble);
        let id = id("blocked", (&definition.name, workflow), trouble);
        match send(daemon_state, definition, &id, &document).await {
            Ok(()) => *has_arrived = true,
            Err(why) => {
                tracing::warn!(queue = %definition.name, %workflow, why, "failed to notify that a workflow stands still");
            }
        }
    }
}

impl Drop for NoticeUnderWay {
    fn drop(&mut self) {
        let (monitor, queue) = (&self.daemon_state.blocked_monitor, &self.definition.name);
        monitor.end_notice(queue, &self.workflow, self.trouble.since, self.has_arrived);
    }
}

/// The same trouble has the same ID, however often it is notified.
fn id(what: &str, (queue, workflow): (&QueueName, &WorkflowId), trouble: &BlockedWorkflow) -> String {
    format!("{what}_{queue}_{:016x}_{}", workflow.partition_hash(), trouble.since.as_millis())
}

fn blocked(definition: &Definition, workflow: &WorkflowId, trouble: &BlockedWorkflow) -> Value {
    json!({
        "type": "workflow_blocked",
        "queue": definition.name.as_str(),
        "workflow_id": workflow.as_str(),
        "cause": trouble.cause,
        "since": WireTime(trouble.since),
        "waiting": trouble.waiting,
        "reason": trouble.reason,
    })
}

fn recovered(recovery: &Recovery) -> Value {
    let Recovery { queue, workflow, trouble, at } = recovery;
    json!({
        "type": "workflow_recovered",
        "queue": queue.as_str(),
        "workflow_id": workflow.as_str(),
        "cause": trouble.cause,
        "since": WireTime(trouble.since),
        "recovered_at": WireTime(*at),
        "reason": trouble.reason,
    })
}

async fn send(
    daemon_state: &DaemonState,
    definition: &Definition,
    id: &str,
    document: &Value,
) -> Result<(), String> {
    let Some(notify) = &definition.notify else { return Ok(()) };
    let site = site_of(definition, &daemon_state.data_dir, &daemon_state.intake, &daemon_state.clock);
    let send = async || {
        let notifier = notifier_of(notify, &site).map_err(|misuse| misuse.to_string())?;
        notifier.send(id, document).await.map_err(|failure| failure.reason().to_owned())
    };
    daemon_state.notices.in_turn(&definition.name, send).await
}
