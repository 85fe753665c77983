//! Making the engine of a partition have the queues and topics that all partitions have.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use crate::cluster::definitions::QueueDefinition;
use crate::cluster::definitions::QueueDefinitions;
use crate::cluster::topic_changes::enforce_topic;
use crate::cluster::topic_changes::remove_topic;
use crate::engine::Client;
use crate::error::OperationError;
use crate::error::QueueError;
use crate::error::QueueRefusal;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::queue::QueueOptions;

/// Which definitions are in force in the engine of a partition: of each name, up to which revision.
pub(crate) struct EnforcedDefinitions {
    definitions: Arc<QueueDefinitions>,
    enforced: tokio::sync::Mutex<BTreeMap<QueueName, u64>>,
}

impl EnforcedDefinitions {
    pub(crate) fn new(definitions: Arc<QueueDefinitions>) -> EnforcedDefinitions {
        EnforcedDefinitions { definitions, enforced: tokio::sync::Mutex::default() }
    }

    /// Has all in force in an engine that has just taken over, as they are now: nobody is to find that there is no queue that
    /// was created before, and what was deleted before it was created anew is not to be deleted again.
    ///
    /// # Errors
    /// [`Unavailable`] when they could not all be heard, or the engine ends.
    pub(crate) async fn begin(&self, client: &Client) -> Result<(), Unavailable> {
        self.enforced.lock().await.clear();
        self.definitions.catch_up().await?;
        self.bring(client, None).await
    }

    /// Has in force what was heard since.
    ///
    /// # Errors
    /// [`Unavailable`] when the engine ends.
    pub(crate) async fn go_on(&self, client: &Client) -> Result<(), Unavailable> {
        self.bring(client, None).await
    }

    /// Has a definition in force at a revision, or a later one, and all that were heard before.
    ///
    /// # Errors
    /// [`Unavailable`] when it was not heard of in time, or the engine ends or refuses it.
    pub(crate) async fn have(
        &self,
        client: &Client,
        name: &QueueName,
        revision: u64,
    ) -> Result<(), Unavailable> {
        self.definitions.hear(name, revision).await?;
        self.bring(client, Some(name)).await
    }

    async fn bring(&self, client: &Client, asked: Option<&QueueName>) -> Result<(), Unavailable> {
        let mut enforced = self.enforced.lock().await;
        let due = self.definitions.due(|name, at| enforced.get(name).is_none_or(|had| *had < at));
        let mut refused = Ok(());
        for (revision, definition) in due {
            let name = definition.name();
            if let Err(error) = enforce(client, revision, &definition).await? {
                tracing::error!(queue = %name, error, "a partition refuses what all have to have");
                if asked == Some(name) {
                    refused = Err(Unavailable::Unanswered(format!("a partition refuses {name}: {error}")));
                }
            }
            enforced.insert(name.clone(), revision);
        }
        refused
    }
}

/// Makes an engine have what is defined. Why it refuses that is an answer.
async fn enforce(
    client: &Client,
    revision: u64,
    definition: &QueueDefinition,
) -> Result<Result<(), String>, Unavailable> {
    match definition {
        QueueDefinition::There { name, options, paused } => {
            refusal_of(enforce_queue(client, name, options, *paused).await)
        }
        QueueDefinition::Topic { name, plan } => {
            refusal_of(enforce_topic(client, name, (revision, plan)).await)
        }
        QueueDefinition::Going { name } | QueueDefinition::Gone { name } => {
            let removed = refusal_of(remove_topic(client, name).await)?;
            let deleted = match client.delete_queue(name).await {
                Err(OperationError::Refused(QueueRefusal::QueueNotFound(_))) => Ok(()),
                deleted => deleted,
            };
            Ok(removed.and(refusal_of(deleted)?))
        }
    }
}

fn refusal_of<R: Error>(enforced: Result<(), OperationError<R>>) -> Result<Result<(), String>, Unavailable> {
    match enforced {
        Ok(()) => Ok(Ok(())),
        Err(OperationError::Unavailable(why)) => Err(why),
        Err(OperationError::Refused(refusal)) => Ok(Err(refusal.to_string())),
        Err(OperationError::Misuse(misuse)) => Ok(Err(misuse.to_string())),
    }
}

async fn enforce_queue(
    client: &Client,
    name: &QueueName,
    options: &QueueOptions,
    paused: bool,
) -> Result<(), QueueError> {
    let queue = match client.create_queue(name, options.clone()).await {
        Err(OperationError::Refused(QueueRefusal::QueueExists(_))) => {
            client.change_queue(name, options.clone()).await?;
            client.queue(name)?
        }
        created => created?,
    };
    queue.set_paused(paused).await?;
    Ok(())
}
