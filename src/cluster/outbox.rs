//! What a completion sends to workflows of other partitions: it is kept in a queue of the sending partition, in the same entry as
//! the completion, and handed over from there by whoever owns that (`handing_over`).
//!
//! The messages for one workflow are one line of that queue, so that none is handed over before those that were sent earlier.

use std::sync::atomic::Ordering;

use crate::cluster::definitions::QueueDefinition;
use crate::cluster::placing::CommandPlace;
use crate::cluster::request_places::RequestWay;
use crate::cluster::router::Router;
use crate::cluster::wrapping::foreign_queues;
use crate::cluster::wrapping::not_found;
use crate::cluster::wrapping::wrap_command;
use crate::engine::elsewhere::Command;
use crate::engine::elsewhere::Reply;
use crate::engine::elsewhere::Settlement;
use crate::engine::elsewhere::verbs;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::limits;
use crate::message::NewMessage;
use crate::own_queues::OUTBOX_QUEUE;
use crate::queue::QueueOptions;

impl Router {
    /// Where a command is done, and the command as one partition can do it: what it sends to others goes to the outbox. Refused
    /// with a reply when there is no queue to send to.
    ///
    /// # Errors
    /// [`Unavailable`] when there is no outbox yet, and none can be made.
    pub(crate) async fn through_outbox(
        &self,
        mut command: Command,
        way: &RequestWay,
    ) -> Result<Result<(CommandPlace, Command), Reply>, Unavailable> {
        let Some(home) = self.home_of(&command, way) else {
            return Ok(Ok((self.places.of(&command), command)));
        };
        let is_foreign = |queue: &QueueName, message: &NewMessage| match self.places.message(queue, message) {
            CommandPlace::One(partition) => partition != home,
            _ => false,
        };
        let foreign = foreign_queues(&command, &is_foreign);
        if !foreign.is_empty() {
            for (index, queue) in foreign {
                // Later nobody would be there to be told.
                if !self.definitions.is_there(&queue).await? {
                    return Ok(Err(not_found(&command, index, queue)));
                }
            }
            self.make_outbox(home).await?;
            let takes_places = |queue: &QueueName| self.definitions.takes_places(queue);
            wrap_command(&mut command, &is_foreign, &takes_places)?;
        }
        Ok(Ok((CommandPlace::One(home), command)))
    }

    /// The partition of a command that may send to others: what is settled is of it.
    pub(crate) fn home_of(&self, command: &Command, way: &RequestWay) -> Option<u16> {
        let place = match command {
            Command::Settle(verbs::Settle { token, settlement: Settlement::Complete(_), .. })
            | Command::SettleRun(verbs::SettleRun { token, .. }) => return Some(self.places.token(*token)),
            Command::Transact(verb) => match self.places.of_held_steps(&verb.steps) {
                CommandPlace::Any => self.places.of(command),
                place => place,
            },
            Command::Publish(_) | Command::PublishOnce(_) => self.places.of(command),
            _ => return None,
        };
        match place {
            CommandPlace::One(partition) => Some(partition),
            CommandPlace::Any => Some(self.any_of(way)),
            // It is refused for what it says.
            _ => None,
        }
    }

    /// Has the queue of the outbox in a partition; in every one, when there is none yet.
    async fn make_outbox(&self, partition: u16) -> Result<(), Unavailable> {
        let has_outbox = &self.partition(partition).has_outbox;
        if has_outbox.load(Ordering::Acquire) {
            return Ok(());
        }
        let name = QueueName::new(OUTBOX_QUEUE).expect("it is a name");
        match self.definitions.entry(&name).await? {
            // Others may wait for their logs.
            (revision, Some(QueueDefinition::There { .. })) => {
                self.define_in(partition, &name, revision).await?;
            }
            _ => {
                let command = verbs::CreateQueue { name, options: Box::new(outbox_options()) };
                let Reply::Queue(Ok(_)) = self.define(command.into()).await? else {
                    return Err(Unavailable::nonsense());
                };
            }
        }
        has_outbox.store(true, Ordering::Release);
        Ok(())
    }
}

fn outbox_options() -> QueueOptions {
    QueueOptions {
        delivery_count_max: u32::MAX,
        lock: limits::OUTBOX_LOCK,
        body_bytes_max: limits::BODY_BYTES_CEILING,
        ..QueueOptions::default()
    }
}
