//! Tells somebody when a workflow stands still for longer than its definition allows, and when it goes on again.

use std::sync::Arc;

use serde_json::Value;
use serde_json::json;

use crate::daemon::daemon::House;
use crate::daemon::lookout::Recovery;
use crate::daemon::lookout::Trouble;
use crate::daemon::posts::notifier_of;
use crate::daemon::posts::site_of;
use crate::definition::Definition;
use crate::id::WorkflowId;
use crate::wire::WireTime;

/// Tells of all workflows that have stood still for too long and nobody was told of, and of those that go on since. Who could
/// not be told is told again with the next look.
pub(crate) async fn tell(house: &Arc<House>) {
    let now = house.clock.now();
    let definitions = house.definitions.load_full();
    for definition in definitions.iter() {
        let Some(notify) = &definition.notify else { continue };
        for (workflow, trouble) in house.lookout.take_untold(&definition.name, notify.after, now) {
            let (house, definition) = (house.clone(), definition.clone());
            tokio::spawn(async move {
                let document = blocked(&definition, &workflow, &trouble);
                if let Err(why) =
                    send(&house, &definition, &id("blocked", &workflow, &trouble), &document).await
                {
                    tracing::warn!(queue = %definition.name, %workflow, why, "failed to notify that a workflow stands still");
                    house.lookout.put_back(&definition.name, &workflow);
                }
            });
        }
    }
    for recovery in house.lookout.take_recovered() {
        let Some(definition) = definitions.get(&recovery.queue).cloned() else { continue };
        let house = house.clone();
        tokio::spawn(async move {
            let (workflow, trouble) = (&recovery.workflow, &recovery.trouble);
            let document = recovered(&recovery);
            if let Err(why) = send(&house, &definition, &id("recovered", workflow, trouble), &document).await
            {
                tracing::warn!(queue = %recovery.queue, %workflow, why, "failed to notify that a workflow goes on again");
                house.lookout.put_recovery(recovery);
            }
        });
    }
}

/// The same trouble has the same ID, however often it is told.
fn id(what: &str, workflow: &WorkflowId, trouble: &Trouble) -> String {
    format!("{what}_{:016x}_{}", workflow.partition_hash(), trouble.since.as_millis())
}

fn blocked(definition: &Definition, workflow: &WorkflowId, trouble: &Trouble) -> Value {
    json!({
        "type": "workflow_blocked",
        "queue": definition.name.as_str(),
        "workflow_id": workflow.as_str(),
        "cause": trouble.cause.name(),
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
        "cause": trouble.cause.name(),
        "since": WireTime(trouble.since),
        "recovered_at": WireTime(*at),
        "reason": trouble.reason,
    })
}

async fn send(house: &House, definition: &Definition, id: &str, document: &Value) -> Result<(), String> {
    let Some(notify) = &definition.notify else { return Ok(()) };
    let site = site_of(definition, &house.home, &house.intake, &house.clock);
    let notifier = notifier_of(notify, &site).map_err(|misuse| misuse.to_string())?;
    notifier.send(id, document).await.map_err(|failure| failure.reason().to_owned())
}
