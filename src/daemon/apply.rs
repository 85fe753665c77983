//! Puts a set of definitions in force: queues, rules, schedules, handlers, in this order.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::daemon::daemon::House;
use crate::daemon::error::DaemonError;
use crate::daemon::ticker::QUEUE as SCHEDULES;
use crate::daemon::ticker::Ticking;
use crate::definition::Definition;
use crate::definition::Definitions;
use crate::engine::Client;
use crate::engine::QueueView;
use crate::error::Error;
use crate::error::QueueError;
use crate::error::QueueRefusal;
use crate::intake::Rule;

/// Puts a set of definitions in force. What is refused is found before anything changes.
pub(crate) async fn apply(house: &House, definitions: Definitions) -> Result<(), DaemonError> {
    let client = house.intake.client();
    let before = house.definitions.load_full();
    for definition in definitions.iter() {
        check(client, before.get(&definition.name), definition).await?;
    }
    for definition in definitions.iter() {
        put_queue(client, definition).await?;
    }
    let rule = |definition: &Arc<Definition>| (definition.name.clone(), definition.rule.clone());
    let rules: BTreeMap<_, Arc<Rule>> = definitions.iter().map(rule).collect();
    house.intake.replace_rules(rules);
    house.ticker.replace(definitions.iter().flat_map(|definition| schedules(definition)).collect()).await?;
    let all: Vec<Arc<Definition>> = definitions.iter().cloned().collect();
    house.crew.replace(&all).await?;
    house.loaded_at.store(Arc::new(house.clock.now()));
    house.definitions.store(Arc::new(definitions));
    Ok(())
}

/// Refuses what would leave stored messages without their place: another order, or another way to find it.
async fn check(
    client: &Client,
    before: Option<&Arc<Definition>>,
    definition: &Definition,
) -> Result<(), DaemonError> {
    let refused = |problem: String| DaemonError::Apply { queue: definition.name.to_string(), problem };
    if definition.name.as_str() == SCHEDULES {
        return Err(refused("the daemon keeps its schedules in the queue of this name".to_owned()));
    }
    let Some(view) = look(client, definition).await? else { return Ok(()) };
    if view.counts.stored() == 0 {
        return Ok(());
    }
    let what = match before {
        _ if view.options.order != definition.options.order => "order",
        Some(before) if before.rule.sources() != definition.rule.sources() => "key or position",
        _ => return Ok(()),
    };
    let stored = view.counts.stored();
    Err(refused(format!(
        "its {what} cannot change while it stores {stored} messages: let its handlers finish them, or purge the queue, \
         or give the new definition another name"
    )))
}

async fn look(client: &Client, definition: &Definition) -> Result<Option<QueueView>, DaemonError> {
    let queue = client.queue(definition.name.as_str()).map_err(Error::from)?;
    match queue.view().await {
        Ok(view) => Ok(Some(view)),
        Err(QueueError::Refused(QueueRefusal::QueueNotFound(_))) => Ok(None),
        Err(error) => Err(Error::from(error).into()),
    }
}

async fn put_queue(client: &Client, definition: &Definition) -> Result<(), DaemonError> {
    let (name, options) = (definition.name.as_str(), definition.options.clone());
    match client.create_queue(name, options.clone()).await {
        Ok(_) => return Ok(()),
        Err(QueueError::Refused(QueueRefusal::QueueExists(_))) => {}
        Err(error) => return Err(Error::from(error).into()),
    }
    match client.change_queue(name, options).await {
        Ok(_) => Ok(()),
        Err(QueueError::Refused(QueueRefusal::OrderInUse(_))) => Err(DaemonError::Apply {
            queue: name.to_owned(),
            problem:
                "its order cannot change while it remembers workflows: purge the queue, or give the new \
                      definition another name"
                    .to_owned(),
        }),
        Err(error) => Err(Error::from(error).into()),
    }
}

fn schedules(definition: &Definition) -> impl Iterator<Item = Ticking> {
    let queue = definition.name.clone();
    let ticking = move |schedule| Ticking { queue: queue.clone(), schedule };
    definition.schedules.clone().into_iter().map(ticking)
}
