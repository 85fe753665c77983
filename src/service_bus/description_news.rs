//! What other nodes of a cluster say of entities.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::limits;
use crate::service_bus::shared::EndpointState;

/// Keeps the descriptions as other nodes of the cluster have them, until it is stopped.
pub(crate) async fn follow(shared: Arc<EndpointState>, stopping: CancellationToken) {
    let (descriptions, mut seen) = (&shared.descriptions, None);
    if !descriptions.are_several {
        return;
    }
    loop {
        tokio::select! {
            slept = shared.client.sleep(limits::SERVICE_BUS_DESCRIPTIONS_LOOK) => if slept.is_err() { return },
            () = stopping.cancelled() => return,
        }
        match descriptions.read_changed(&seen).await {
            Ok(said) => seen = said,
            Err(error) => tracing::debug!(%error, "what other nodes say of entities is not known now"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::clock::Timestamp;
    use crate::engine::Engine;
    use crate::id::QueueName;
    use crate::service_bus::creation_instant::CreationInstant;
    use crate::service_bus::description::Description;
    use crate::service_bus::description::Descriptions;

    #[tokio::test]
    async fn what_one_node_says_of_an_entity_another_knows_when_it_looks() {
        let engine = Engine::in_memory().open().await.unwrap();
        let new = || Descriptions::new(engine.client().clone(), true);
        let (one, other) = (new(), new());
        one.open().await.unwrap();
        let name = QueueName::new("q").unwrap();
        let at = CreationInstant { at: Timestamp::default(), may_be_earlier: false };
        let said = Description { forward_to: Some("r".to_owned()), ..Description::default() };
        one.describe(&name, &said).await.unwrap();
        let seen = other.read_changed(&None).await.unwrap();
        assert_eq!(*other.of(&name, at), said);
        assert_eq!(other.read_changed(&seen).await.unwrap(), seen, "nothing was said since");
        one.describe(&name, &Description::default()).await.unwrap();
        assert_ne!(other.read_changed(&seen).await.unwrap(), seen);
        assert_eq!(*other.of(&name, at), Description::default());
        // Whoever begins later takes what says that something was changed for no entity.
        new().open().await.unwrap();
    }
}
