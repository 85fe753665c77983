//! Tells somebody when a workflow stands still for longer than its definition allows.

use std::sync::Arc;

use serde_json::json;

use crate::daemon::daemon::House;
use crate::daemon::lookout::Trouble;
use crate::daemon::posts::notifier_of;
use crate::daemon::posts::site_of;
use crate::definition::Definition;
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
                if let Err(why) = send(&house, &definition, &workflow, &trouble).await {
                    tracing::warn!(queue = %definition.name, %workflow, why, "tell of a workflow that stands still");
                    house.lookout.put_back(&definition.name, &workflow);
                }
            });
        }
    }
}

async fn send(
    house: &House,
    definition: &Definition,
    workflow: &WorkflowId,
    trouble: &Trouble,
) -> Result<(), String> {
    let Some(notify) = &definition.notify else { return Ok(()) };
    let site = site_of(definition, &house.home, &house.intake, &house.clock);
    let notifier = notifier_of(notify, &site).map_err(|misuse| misuse.to_string())?;
    let document = json!({
        "type": "workflow_blocked",
        "queue": definition.name.as_str(),
        "workflow_id": workflow.as_str(),
        "cause": trouble.cause.name(),
        "since": WireTime(trouble.since),
        "waiting": trouble.waiting,
        "reason": trouble.reason,
    });
    // The same trouble has the same ID, however often it is told.
    let id = format!("blocked_{:016x}_{}", workflow.partition_hash(), trouble.since.as_millis());
    notifier.send(&id, &document).await.map_err(|failure| failure.reason().to_owned())
}
