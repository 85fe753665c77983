//! What a sender can still do to a message before its instant: cancel it, or let it come at another one.

use crate::clock::Timestamp;
use crate::engine::client::queue::Queue;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::verbs::Cancel;
use crate::engine::rules::verbs::Reschedule;
use crate::engine::rules::verbs::Send;
use crate::error::SendError;
use crate::id::SequenceNumber;
use crate::message::Message;

impl Queue {
    /// Sends what a schedule sends, out of its turn: the audit has an entry, if the client acts for somebody.
    ///
    /// # Errors
    /// As [`Queue::send`].
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only the daemon has schedules"))]
    pub(crate) async fn run_schedule(&self, message: Message) -> Result<Receipt, SendError> {
        let command = Send { queue: self.name.clone(), messages: vec![message.check()?] };
        let receipts = self.client.operate(command).await?;
        Ok(receipts.into_iter().next().expect("every message has its receipt"))
    }

    /// Stops a scheduled message and gives its place back: its position, or its predecessor in after-order, and its ID may
    /// be sent again. Messages that wait behind it wait for that, and the wait of the gap begins.
    ///
    /// # Errors
    /// [`SendRefusal::NotScheduled`](crate::error::SendRefusal::NotScheduled) when it is not scheduled, or not any more.
    pub async fn cancel(&self, number: SequenceNumber) -> Result<(), SendError> {
        self.cancel_as(number, false).await
    }

    /// Stops a scheduled message and declares its place void in the same transaction: what waits behind it goes on, and
    /// what is sent for that place later goes to the dead letters (`arrived_after_gap`).
    ///
    /// # Errors
    /// As [`Queue::cancel`].
    pub async fn cancel_and_void(&self, number: SequenceNumber) -> Result<(), SendError> {
        self.cancel_as(number, true).await
    }

    async fn cancel_as(&self, sequence: SequenceNumber, void: bool) -> Result<(), SendError> {
        self.client.ask(Cancel { queue: self.name.clone(), sequence, void }).await
    }

    /// Lets a scheduled message come at another instant of the wall clock; one that has passed makes it ready at once. It
    /// keeps its place, ID, sequence number and delivery count. Its time to live begins with the new instant.
    ///
    /// # Errors
    /// As [`Queue::cancel`].
    pub async fn reschedule(&self, number: SequenceNumber, at: Timestamp) -> Result<(), SendError> {
        self.client.ask(Reschedule { queue: self.name.clone(), sequence: number, at }).await
    }
}
