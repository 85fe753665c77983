//! A handle of one queue: send, receive, take, look, purge.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::client::bodies::side_by_side;
use crate::engine::client::client::Client;
use crate::engine::client::delivery::Delivery;
use crate::engine::client::delivery::DeliveryHold;
use crate::engine::client::delivery::DeliveryOrigin;
use crate::engine::client::run::Run;
#[cfg(feature = "daemon")]
use crate::engine::page::LiveMessages;
use crate::engine::query::Query;
use crate::engine::rules::command::LockedMessage;
use crate::engine::rules::command::PurgeFrom;
use crate::engine::rules::command::PurgeScope;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::verb::surely;
use crate::engine::rules::verbs::CompleteAll;
use crate::engine::rules::verbs::PauseQueue;
use crate::engine::rules::verbs::Purge;
use crate::engine::rules::verbs::Receive;
use crate::engine::rules::verbs::ReceiveDeferred;
use crate::engine::rules::verbs::ReceiveRun;
use crate::engine::rules::verbs::Send;
use crate::engine::rules::verbs::SendEach;
use crate::engine::view::MessageView;
use crate::engine::view::QueueView;
use crate::engine::view::WorkflowView;
use crate::error::Misuse;
use crate::error::OperateError;
use crate::error::QueueError;
#[cfg(feature = "daemon")]
use crate::error::QueueRefusal;
use crate::error::ReceiveError;
use crate::error::SendError;
use crate::error::SettleError;
use crate::error::SettleRefusal;
#[cfg(feature = "daemon")]
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;
use crate::message::Message;
use crate::message::NewMessage;
#[cfg(feature = "daemon")]
use crate::queue::QueueOptions;
use crate::shown::shown;

/// A handle of one queue. Cheap to clone; it does not keep the queue from being deleted.
#[derive(Clone)]
pub struct Queue {
    pub(crate) client: Client,
    pub(crate) name: QueueName,
}

shown!(Queue { name });

impl Queue {
    pub(crate) fn new(client: Client, name: QueueName) -> Queue {
        Queue { client, name }
    }

    /// Its name.
    pub fn name(&self) -> &QueueName {
        &self.name
    }

    /// The client it belongs to.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends a message. When this returns, the message is on disk.
    ///
    /// Messages are accepted in the order in which the futures of their sends are first polled: those of one task in the order
    /// in which it awaits them, and those of a `join_all` in the order of its list.
    ///
    /// If the future is dropped before it is done, the message may have been sent: send it again under the same position, under the
    /// same message ID to a queue with a `duplicate_window`, or with [`Queue::send_batch_once`] in the first place.
    ///
    /// # Errors
    /// [`SendRefusal`](crate::error::SendRefusal); [`Misuse`] names a field that is not allowed.
    pub async fn send(&self, message: Message) -> Result<Receipt, SendError> {
        let receipts = self.send_checked(vec![message.check()?]).await?;
        Ok(receipts.into_iter().next().expect("every message has its receipt"))
    }

    /// Sends up to 1,024 messages in one transaction: all are accepted, or none.
    ///
    /// # Errors
    /// As [`Queue::send`]; the refusal says which message it was.
    pub async fn send_batch(
        &self,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Vec<Receipt>, SendError> {
        self.send_whole(messages, limits::SEND_BATCH_MAX).await
    }

    /// The same of up to `max` messages, for an endpoint that bounds the bytes of what its clients send as one.
    pub(crate) async fn send_whole(
        &self,
        messages: impl IntoIterator<Item = Message>,
        max: usize,
    ) -> Result<Vec<Receipt>, SendError> {
        self.send_checked(check_together(messages, max)?).await
    }

    /// Sends up to 1,024 messages in one transaction, each accepted or refused for itself, in the order given: one that
    /// is refused keeps no other from being accepted. What is accepted is on disk when this returns.
    ///
    /// # Errors
    /// [`Misuse`] when there are too many or they are too large together: then none is accepted. What refuses a single
    /// message, as in [`Queue::send`], is in the answer at its place.
    pub async fn send_each(
        &self,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Vec<Result<Receipt, SendError>>, SendError> {
        let mut answers = Vec::new();
        let mut checked = Vec::new();
        for message in messages {
            match message.check() {
                Ok(message) => {
                    checked.push(message);
                    answers.push(None);
                }
                Err(misuse) => answers.push(Some(misuse)),
            }
        }
        check_batch_of(&checked, limits::SEND_BATCH_MAX)?;
        side_by_side(&mut checked);
        let command = SendEach { queue: self.name.clone(), messages: checked };
        let mut sent = surely(self.client.answer(command).await?).into_iter();
        let answer = |misuse: Option<Misuse>| match misuse {
            Some(misuse) => Err(SendError::Misuse(misuse)),
            None => sent.next().expect("every message has its answer").map_err(SendError::Refused),
        };
        Ok(answers.into_iter().map(answer).collect())
    }

    async fn send_checked(&self, messages: Vec<NewMessage>) -> Result<Vec<Receipt>, SendError> {
        self.client.ask(Send { queue: self.name.clone(), messages }).await
    }

    /// Receives the next message of a workflow nobody holds, waiting for one up to `wait`.
    ///
    /// If the future is dropped nothing is lost: what was handed out to it is given back as if it had not been. So it may stand in
    /// a `select!` or under a timeout, and so may the others that receive under a lock.
    ///
    /// # Errors
    /// [`ReceiveRefusal::QueueNotFound`](crate::error::ReceiveRefusal::QueueNotFound).
    pub async fn receive(&self, wait: Duration) -> Result<Option<Delivery>, ReceiveError> {
        Ok(self.receive_many(1, wait).await?.pop())
    }

    /// Receives up to `max` messages of different workflows, waiting up to `wait` for the first: at most 1,024 at once and about
    /// 16 MiB of them, and none while 65,536 locks are held.
    ///
    /// # Errors
    /// As [`Queue::receive`]; [`Misuse`] for a `max` of 0.
    pub async fn receive_many(&self, max: usize, wait: Duration) -> Result<Vec<Delivery>, ReceiveError> {
        check_max(max)?;
        let command = Receive { queue: self.name.clone(), max, token: self.client.token()? };
        Ok(deliveries(&self.client, &self.name, self.client.ask_for_work(command, wait).await?))
    }

    /// Receives as [`Queue::receive_many`], but waits only until there is `enough`. What was handed out before is
    /// always received.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only endpoints of the daemon ask so"))]
    pub(crate) async fn receive_until(
        &self,
        max: usize,
        wait: Duration,
        enough: impl Future<Output = ()>,
    ) -> Result<Vec<Delivery>, ReceiveError> {
        check_max(max)?;
        let token = self.client.token()?;
        let command = Receive { queue: self.name.clone(), max, token };
        let handed = self.client.ask_for_work_until(command, token, wait, enough).await?;
        Ok(deliveries(&self.client, &self.name, handed))
    }

    /// Receives a run of up to `max` consecutive messages of one workflow, waiting up to `wait` for the first: at most 1,024 and about
    /// 16 MiB of them.
    ///
    /// # Errors
    /// As [`Queue::receive_many`]; [`ReceiveRefusal::TooManyLocks`](crate::error::ReceiveRefusal::TooManyLocks) while 65,536 are held.
    pub async fn receive_run(&self, max: usize, wait: Duration) -> Result<Option<Run>, ReceiveError> {
        check_max(max)?;
        let command = ReceiveRun { queue: self.name.clone(), max, token: self.client.token()? };
        let handed = self.client.ask_for_work(command, wait).await?;
        Ok(Run::new(self.client.clone(), self.name.clone(), handed))
    }

    /// Receives messages that were set aside, by number: all of them or none, at most 1,024.
    ///
    /// # Errors
    /// [`ReceiveRefusal::MessageNotFound`](crate::error::ReceiveRefusal::MessageNotFound) when one is not set aside;
    /// [`ReceiveRefusal::WorkflowLocked`](crate::error::ReceiveRefusal::WorkflowLocked) when its workflow has a holder, and
    /// [`ReceiveRefusal::WorkflowHeld`](crate::error::ReceiveRefusal::WorkflowHeld) when it stands still. On a cluster a [`Misuse`] of code
    /// `too_large` when together they have more bytes than an answer takes: ask for fewer.
    pub async fn receive_deferred(&self, numbers: &[SequenceNumber]) -> Result<Vec<Delivery>, ReceiveError> {
        check_numbers(numbers)?;
        let (queue, sequences) = (self.name.clone(), numbers.to_vec());
        let command = ReceiveDeferred { queue, sequences, token: self.client.token()? };
        Ok(deliveries(&self.client, &self.name, self.client.ask(command).await?))
    }

    /// Completes up to 1,024 deliveries of this queue, of whatever workflows, in one request. Each is judged for
    /// itself, in the order given: a lock that was lost refuses that delivery and no other. What is completed is on
    /// disk when this returns.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), seriatim::Error> {
    /// use std::time::Duration;
    /// use seriatim::{Engine, Message, QueueOptions};
    ///
    /// let engine = Engine::in_memory().open().await?;
    /// let queue = engine.client().create_queue("q", QueueOptions::default()).await?;
    /// queue.send_batch(["a", "b", "c"].map(|workflow| Message::new("hello").workflow(workflow))).await?;
    ///
    /// let mut deliveries = queue.receive_many(10, Duration::ZERO).await?;
    /// for (delivery, completed) in queue.complete_all(&mut deliveries).await?.into_iter().enumerate() {
    ///     completed.unwrap_or_else(|refusal| println!("delivery {delivery} was not completed: {refusal}"));
    /// }
    /// assert_eq!(queue.view().await?.counts.completed, 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Misuse`] when there are too many, or when one belongs to another queue: then none is completed. What refuses
    /// a single delivery, as in [`Delivery::complete`], is in the answer at its place.
    pub async fn complete_all(
        &self,
        deliveries: impl IntoIterator<Item = &mut Delivery>,
    ) -> Result<Vec<Result<(), SettleRefusal>>, SettleError> {
        self.complete_held(deliveries.into_iter().map(Delivery::hold).collect()).await
    }

    /// The same, by what it takes to settle them.
    pub(crate) async fn complete_held(
        &self,
        mut holds: Vec<&mut DeliveryHold>,
    ) -> Result<Vec<Result<(), SettleRefusal>>, SettleError> {
        check_to_complete(&self.name, &holds)?;
        let deliveries = holds.iter().map(|hold| hold.to_settle()).collect();
        let command = CompleteAll { queue: self.name.clone(), deliveries };
        let answers = surely(self.client.answer(command).await?);
        for (hold, _) in holds.iter_mut().zip(&answers).filter(|(_, answer)| answer.is_ok()) {
            hold.note_settled();
        }
        Ok(answers)
    }

    /// Its options, and how many messages are where.
    ///
    /// # Errors
    /// [`QueueRefusal::QueueNotFound`](crate::error::QueueRefusal::QueueNotFound).
    pub async fn view(&self) -> Result<QueueView, QueueError> {
        self.client.look(&self.name, |slot| Query::Queue { name: self.name.clone(), slot }).await
    }

    /// Its options: of a cluster, any one partition says them, so that none has to answer that has no node at the moment.
    #[cfg(feature = "daemon")]
    pub(crate) async fn options(&self) -> Result<QueueOptions, QueueError> {
        self.client.look(&self.name, |slot| Query::Options { name: self.name.clone(), slot }).await
    }

    /// As [`Queue::view`]; nothing of a queue that is not there.
    #[cfg(feature = "daemon")]
    pub(crate) async fn view_if_any(&self) -> Result<Option<QueueView>, QueueError> {
        match self.view().await {
            Err(QueueError::Refused(QueueRefusal::QueueNotFound(_))) => Ok(None),
            seen => seen.map(Some),
        }
    }

    /// Up to `limit` of its workflows in order of ID, after the given one: what each does, or why it does nothing.
    /// At most 1,000 are returned, whatever the limit.
    ///
    /// # Errors
    /// As [`Queue::view`].
    pub async fn workflows(
        &self,
        after: Option<&WorkflowId>,
        limit: usize,
    ) -> Result<Vec<WorkflowView>, QueueError> {
        let (queue, after) = (self.name.clone(), after.cloned());
        self.client.look(&self.name, |slot| Query::Workflows { queue, after, limit, slot }).await
    }

    /// Up to `limit` of its workflows that may stand still, in order of ID, after the given one: each one that does, and some
    /// that do not. At most 1,000 are returned, whatever the limit. `None` as long as they are not all known, after the file was
    /// opened: who asks lets the engine look at 1,000 more. What is ready and only waits for a rate is not among them.
    ///
    /// # Errors
    /// As [`Queue::view`].
    pub async fn standing_workflows(
        &self,
        after: Option<&WorkflowId>,
        limit: usize,
    ) -> Result<Option<Vec<WorkflowView>>, QueueError> {
        let (queue, after) = (self.name.clone(), after.cloned());
        self.client.look(&self.name, |slot| Query::Standing { queue, after, limit, slot }).await
    }

    /// Up to `limit` messages of any status, in order of number, from the given one on. Looking changes nothing.
    /// At most 1,000 are returned, whatever the limit, and no more once their bodies have 16 MiB.
    ///
    /// # Errors
    /// As [`Queue::view`].
    pub async fn peek(&self, from: SequenceNumber, limit: usize) -> Result<Vec<MessageView>, QueueError> {
        let queue = self.name.clone();
        self.client.look(&self.name, |slot| Query::Messages { queue, from, limit, slot }).await
    }

    /// As [`Queue::peek`], without dead letters: these are passed over, whatever their size.
    #[cfg(feature = "daemon")]
    pub(crate) async fn peek_live(
        &self,
        from: SequenceNumber,
        limit: usize,
    ) -> Result<LiveMessages, QueueError> {
        let queue = self.name.clone();
        match self.client.look_up(|slot| Query::Live { queue, from, limit, slot }).await {
            // The nodes of a cluster have no word for it.
            Err(Unavailable::Unsupported(_)) => Ok(LiveMessages::of(self.peek(from, limit).await?)),
            found => found?
                .ok_or_else(|| QueueRefusal::QueueNotFound(self.name.clone()))
                .map_err(QueueError::Refused),
        }
    }

    /// Removes every message for good, deferred, scheduled and dead letters included, except what is handed out.
    /// Returns how many. Other work goes on between its steps; if the future is dropped before it ends, a part may be gone.
    ///
    /// # Errors
    /// [`OperateRefusal::QueueNotFound`](crate::error::OperateRefusal::QueueNotFound).
    pub async fn purge(&self) -> Result<u64, OperateError> {
        purge(&self.client, &self.name, PurgeScope::Everything).await
    }

    /// Notes on the queue that the handlers of a daemon pause, or go on; false when that is known. It is kept with the queue,
    /// also in a backup. The engine itself hands out as ever.
    ///
    /// # Errors
    /// [`QueueRefusal::QueueNotFound`](crate::error::QueueRefusal::QueueNotFound).
    pub async fn set_paused(&self, paused: bool) -> Result<bool, QueueError> {
        self.client.operate(PauseQueue { name: self.name.clone(), paused }).await
    }

    /// Up to `limit` messages without a workflow ID from a number on, each as the workflow that it is.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only the daemon's server asks so"))]
    pub(crate) async fn alone(
        &self,
        from: SequenceNumber,
        limit: usize,
    ) -> Result<Vec<(SequenceNumber, WorkflowView)>, QueueError> {
        let queue = self.name.clone();
        self.client.look(&self.name, |slot| Query::Alone { queue, from, limit, slot }).await
    }

    /// Removes one dead letter for good. Returns whether there was one with this number.
    ///
    /// # Errors
    /// As [`Queue::purge`].
    pub async fn purge_dead_letter(&self, number: SequenceNumber) -> Result<bool, OperateError> {
        Ok(purge(&self.client, &self.name, PurgeScope::DeadLetter(number)).await? == 1)
    }

    /// Removes every dead letter for good. Returns how many; if the future is dropped before it ends, a part may be gone.
    ///
    /// # Errors
    /// As [`Queue::purge`].
    pub async fn purge_dead_letters(&self) -> Result<u64, OperateError> {
        purge(&self.client, &self.name, PurgeScope::DeadLetters).await
    }
}

/// Checks up to `max` messages that are sent as one, and lays their small bodies side by side.
pub(crate) fn check_together(
    messages: impl IntoIterator<Item = Message>,
    max: usize,
) -> Result<Vec<NewMessage>, Misuse> {
    let mut checked = check_messages(messages, max)?;
    side_by_side(&mut checked);
    Ok(checked)
}

/// Checks up to `max` messages that are sent as one. No more than one too many is looked at.
pub(crate) fn check_messages(
    messages: impl IntoIterator<Item = Message>,
    max: usize,
) -> Result<Vec<NewMessage>, Misuse> {
    let messages = messages.into_iter();
    let most = max.saturating_add(1);
    let mut checked = Vec::with_capacity(messages.size_hint().0.min(most));
    for message in messages.take(most) {
        checked.push(message.check()?);
    }
    check_batch_of(&checked, max)?;
    Ok(checked)
}

fn check_batch_of(messages: &[NewMessage], max: usize) -> Result<(), Misuse> {
    if messages.len() > max {
        return Err(Misuse::new("batch", format!("has more than {max} messages")));
    }
    let bytes: usize = messages.iter().map(NewMessage::len).sum();
    if bytes > limits::SEND_BATCH_BYTES_MAX {
        let problem = format!("has {bytes} bytes, at most {} are allowed", limits::SEND_BATCH_BYTES_MAX);
        return Err(Misuse::new("batch", problem));
    }
    Ok(())
}

/// A receiver that may have nothing would wait in front of others for ever.
pub(crate) fn check_max(max: usize) -> Result<(), Misuse> {
    if max == 0 { Err(Misuse::new("max", "must be at least 1")) } else { Ok(()) }
}

/// Checks what is asked for by number.
pub(crate) fn check_numbers(numbers: &[SequenceNumber]) -> Result<(), Misuse> {
    match numbers.len() > limits::RECEIVE_MAX {
        true => Err(Misuse::new("numbers", format!("are more than {}", limits::RECEIVE_MAX))),
        false => Ok(()),
    }
}

fn check_to_complete(queue: &QueueName, holds: &[&mut DeliveryHold]) -> Result<(), Misuse> {
    if holds.len() > limits::COMPLETE_ALL_MAX {
        return Err(Misuse::new("deliveries", format!("are more than {}", limits::COMPLETE_ALL_MAX)));
    }
    match holds.iter().find(|hold| hold.queue() != queue) {
        Some(other) => Err(Misuse::new("deliveries", format!("have one of queue {}", other.queue()))),
        None => Ok(()),
    }
}

/// Purges step by step.
pub(crate) async fn purge(
    client: &Client,
    queue: &QueueName,
    scope: PurgeScope,
) -> Result<u64, OperateError> {
    let (mut count, mut entry) = (0, None);
    let mut from = Some(PurgeFrom::Start);
    while let Some(next) = from {
        let command = Purge { queue: queue.clone(), scope: scope.clone(), from: next };
        let purged = client.answer_operator(command, entry).await?.map_err(OperateError::Refused)?;
        count += purged.count;
        // What a trial has removed is there again, and would be removed for ever.
        (from, entry) = (purged.next.filter(|_| !client.is_dry_run()), purged.entry);
    }
    Ok(count)
}

/// What was handed out, as deliveries.
pub(crate) fn deliveries(client: &Client, queue: &QueueName, handed: Vec<LockedMessage>) -> Vec<Delivery> {
    let origin = Arc::new(DeliveryOrigin { client: client.clone(), queue: queue.clone() });
    handed.into_iter().map(|handed| Delivery::new(origin.clone(), handed)).collect()
}
