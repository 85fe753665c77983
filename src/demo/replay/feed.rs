//! The sender: every change becomes a message, in order of arrival.

use std::time::Duration;

use seriatim::Message;
use seriatim::Order;
use seriatim::Queue;
use seriatim::QueueOptions;

use crate::demo::git::PathChange;
use crate::demo::git::arrival_order;
use crate::demo::git::workflow_id;
use crate::demo::replay::error::ReplayError;
use crate::demo::replay::plan::Handling;

/// Messages in one send.
const BATCH_LEN: usize = 256;

/// How long message IDs are remembered in the controls: longer than any replay.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(24 * 60 * 60);

/// The queue for a way of handling.
pub(crate) fn queue_options(handling: Handling) -> QueueOptions {
    match handling {
        // A message may be in flight at every kill, and none of them is its fault.
        Handling::Ordered => QueueOptions::by_position().delivery_count_max(u32::MAX),
        Handling::AsTheyArrive | Handling::RetryAtBack => QueueOptions::default()
            .order(Order::Arrival)
            .duplicate_window(DUPLICATE_WINDOW)
            .delivery_count_max(u32::MAX),
    }
}

/// Sends every change. After a crash it simply begins again from the start: a position that is settled or waiting is
/// answered, not stored again.
pub(crate) async fn feed(
    queue: Queue,
    changes: Vec<PathChange>,
    handling: Handling,
    on_cluster: bool,
) -> Result<(), ReplayError> {
    let order = match handling {
        Handling::Ordered | Handling::AsTheyArrive => arrival_order(&changes),
        Handling::RetryAtBack => (0..changes.len()).collect(),
    };
    for batch in order.chunks(BATCH_LEN) {
        let messages: Result<Vec<Message>, ReplayError> =
            batch.iter().map(|index| message(&changes[*index], *index, handling)).collect();
        let messages = messages?;
        match on_cluster {
            true => send_until_taken(&queue, messages).await?,
            false => drop(queue.send_batch(messages).await?),
        }
    }
    Ok(())
}

/// Sends messages of several partitions, each for itself, and again those of which it is not known whether they were taken: a
/// position that is settled or waiting is answered.
async fn send_until_taken(queue: &Queue, mut messages: Vec<Message>) -> Result<(), ReplayError> {
    while !messages.is_empty() {
        let answers = match queue.send_each(messages.clone()).await {
            Ok(answers) => answers,
            Err(error) => {
                let error = ReplayError::from(error);
                if error.passes() { continue } else { return Err(error) }
            }
        };
        let mut again = Vec::new();
        for (message, answer) in messages.into_iter().zip(answers) {
            match answer.map_err(ReplayError::from) {
                Ok(_) => {}
                Err(error) if error.passes() => again.push(message),
                Err(error) => return Err(error),
            }
        }
        messages = again;
    }
    Ok(())
}

fn message(change: &PathChange, index: usize, handling: Handling) -> Result<Message, ReplayError> {
    let message = Message::json(&change.body())?.workflow(workflow_id(&change.path));
    Ok(match handling {
        Handling::Ordered => message.position(change.position),
        Handling::AsTheyArrive | Handling::RetryAtBack => message.message_id(index.to_string()),
    })
}
