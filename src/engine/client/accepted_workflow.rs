//! A workflow accepted whole: its messages in order, several ahead if its holder likes.

use std::time::Duration;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::engine::client::client::Client;
use crate::engine::client::delivery::Delivery;
use crate::engine::client::delivery::Renewal;
use crate::engine::client::queue::Queue;
use crate::engine::client::queue::check_max;
use crate::engine::client::queue::check_numbers;
use crate::engine::client::queue::deliveries;
use crate::engine::client::settling::check_state;
use crate::engine::left_answers::LeftAnswers;
use crate::engine::rules::command::WorkflowGrant;
use crate::engine::rules::verbs::AcceptWorkflow;
use crate::engine::rules::verbs::CloseWorkflow;
use crate::engine::rules::verbs::ReceiveDeferredFromWorkflow;
use crate::engine::rules::verbs::ReceiveFromWorkflow;
use crate::engine::rules::verbs::SetWorkflowState;
use crate::engine::rules::verbs::SettleApart;
use crate::error::ReceiveError;
use crate::error::SettleError;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::shown::shown;
use crate::token::LockToken;

/// A workflow that one consumer has accepted: nobody else is offered anything of it meanwhile.
///
/// Each of its deliveries is settled for itself. In an ordered queue, when one fails, those received behind it are
/// taken back: their settle is refused as lost, and they are offered again after it. One that is given back unstarted takes back those behind
/// it in the same way; these can still be given back, too, as long as they are not received again.
///
/// # Dropping
/// Dropping it gives the workflow back, and what is unsettled as if it had not been handed out. Deliveries of it that are dropped
/// before it count as failed attempts, and Rust drops what was declared last first: to give all back uncounted,
/// [`close`](AcceptedWorkflow::close) it, or drop it before them.
#[must_use = "an accepted workflow that is dropped is given back"]
pub struct AcceptedWorkflow {
    client: Client,
    queue: QueueName,
    token: LockToken,
    workflow_id: Option<WorkflowId>,
    state: Option<Bytes>,
    locked_until: Timestamp,
    /// The end of its first lock, in the clock's elapsed time.
    first_end: Duration,
    closed: bool,
    /// Receives that nobody waits for any more: the next one comes behind what they give back.
    left: LeftAnswers,
}

shown!(AcceptedWorkflow { queue, workflow_id, locked_until });

impl Queue {
    /// Accepts a workflow whole, by name, whether or not something of it is stored.
    ///
    /// # Errors
    /// [`ReceiveRefusal::WorkflowLocked`](crate::error::ReceiveRefusal::WorkflowLocked) when somebody holds it.
    pub async fn accept_workflow(&self, id: impl AsRef<str>) -> Result<AcceptedWorkflow, ReceiveError> {
        let (queue, workflow) = (self.name.clone(), Some(WorkflowId::new(id)?));
        let command = AcceptWorkflow { queue, workflow, token: self.client.token()? };
        let grant =
            self.client.ask(command).await?.expect("a workflow that is named is accepted, or refused");
        Ok(AcceptedWorkflow::new(self.client.clone(), self.name.clone(), grant))
    }

    /// Accepts the next workflow that has work, waiting for one up to `wait`.
    ///
    /// # Errors
    /// As [`Queue::receive`].
    pub async fn accept_next_workflow(
        &self,
        wait: Duration,
    ) -> Result<Option<AcceptedWorkflow>, ReceiveError> {
        let (queue, token) = (self.name.clone(), self.client.token()?);
        let grant = self.client.ask_for_work(AcceptWorkflow { queue, workflow: None, token }, wait).await?;
        Ok(grant.map(|grant| AcceptedWorkflow::new(self.client.clone(), self.name.clone(), grant)))
    }

    /// The same, and does not wait on once there is `enough`: it is answered at once then, with what was granted by that time.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only endpoints of the daemon ask so"))]
    pub(crate) async fn accept_next_workflow_until(
        &self,
        wait: Duration,
        enough: impl Future<Output = ()>,
    ) -> Result<Option<AcceptedWorkflow>, ReceiveError> {
        let (queue, token) = (self.name.clone(), self.client.token()?);
        let command = AcceptWorkflow { queue, workflow: None, token };
        let grant = self.client.ask_for_work_until(command, token, wait, enough).await?;
        Ok(grant.map(|grant| AcceptedWorkflow::new(self.client.clone(), self.name.clone(), grant)))
    }
}

impl AcceptedWorkflow {
    pub(crate) fn new(client: Client, queue: QueueName, grant: WorkflowGrant) -> AcceptedWorkflow {
        let locked_until = client.shown(grant.locked_until);
        let first_end = client.elapsed_at(grant.locked_until);
        AcceptedWorkflow {
            client,
            queue,
            token: grant.token,
            workflow_id: grant.stream.workflow_id().cloned(),
            state: grant.state,
            locked_until,
            first_end,
            closed: false,
            left: LeftAnswers::default(),
        }
    }

    /// Its ID; `None` for a message without workflow ID, which is a workflow of its own.
    pub fn workflow_id(&self) -> Option<&WorkflowId> {
        self.workflow_id.as_ref()
    }

    /// Its state when it was accepted, or as this handle has set it since.
    pub fn state(&self) -> Option<&Bytes> {
        self.state.as_ref()
    }

    /// Until when it is locked, as far as this handle knows.
    pub fn locked_until(&self) -> Timestamp {
        self.locked_until
    }

    /// When its lock ends that has never been renewed, in the clock's elapsed time.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only endpoints of the daemon ask so"))]
    pub(crate) fn first_end(&self) -> Duration {
        self.first_end
    }

    /// The lock token, to be shown to others as a fencing token.
    pub fn lock_token(&self) -> LockToken {
        self.token
    }

    /// Receives up to `max` of its next messages, waiting up to `wait` for the first. If the future is dropped, what it was handed
    /// meanwhile is given back as if it had not been, before the next receive. Of several at once, those that wait on a cluster may find
    /// nothing the sooner for it.
    ///
    /// # Errors
    /// [`ReceiveRefusal::LockLost`](crate::error::ReceiveRefusal::LockLost) when the workflow is not held any more.
    pub async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<Delivery>, ReceiveError> {
        check_max(max)?;
        self.left.end(|| self.client.withdraw(self.token)).await;
        let command = ReceiveFromWorkflow { queue: self.queue.clone(), token: self.token, max };
        let handed = self.client.ask_for_work_or_leave(command, wait, &self.left).await?;
        Ok(deliveries(&self.client, &self.queue, handed))
    }

    /// Receives as [`AcceptedWorkflow::receive`], but waits only until there is `enough`. What was handed out before is
    /// always received.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only endpoints of the daemon ask so"))]
    pub(crate) async fn receive_until(
        &self,
        max: usize,
        wait: Duration,
        enough: impl Future<Output = ()>,
    ) -> Result<Vec<Delivery>, ReceiveError> {
        check_max(max)?;
        let command = ReceiveFromWorkflow { queue: self.queue.clone(), token: self.token, max };
        let handed = self.client.ask_for_work_until(command, self.token, wait, enough).await?;
        Ok(deliveries(&self.client, &self.queue, handed))
    }

    /// Receives messages of it that were set aside, all of them or none.
    ///
    /// # Errors
    /// As [`AcceptedWorkflow::receive`];
    /// [`ReceiveRefusal::MessageNotFound`](crate::error::ReceiveRefusal::MessageNotFound). As [`Queue::receive_deferred`] on a cluster.
    pub async fn receive_deferred(&self, numbers: &[SequenceNumber]) -> Result<Vec<Delivery>, ReceiveError> {
        check_numbers(numbers)?;
        let (queue, token, sequences) = (self.queue.clone(), self.token, numbers.to_vec());
        let command = ReceiveDeferredFromWorkflow { queue, token, sequences };
        Ok(deliveries(&self.client, &self.queue, self.client.ask(command).await?))
    }

    /// Sets the workflow's state, or clears it.
    ///
    /// # Errors
    /// [`SettleRefusal::LockLost`](crate::error::SettleRefusal::LockLost) when the workflow is not held any more.
    pub async fn set_state(&mut self, state: Option<Bytes>) -> Result<(), SettleError> {
        if let Some(state) = &state {
            check_state(state)?;
        }
        let (queue, token) = (self.queue.clone(), self.token);
        self.client.ask(SetWorkflowState { queue, token, state: state.clone() }).await?;
        self.state = state;
        Ok(())
    }

    /// Asks that a message that fails leaves you what you have ahead of it, as in a session of Service Bus: you give up
    /// order through failures. It is heard in order of arrival with [`ExhaustedPolicy::Skip`](crate::queue::ExhaustedPolicy::Skip) and without
    /// `hold_on_defer`; where the queue's options ask for more order, nothing changes.
    ///
    /// # Errors
    /// As [`AcceptedWorkflow::set_state`].
    pub async fn settle_apart(&self) -> Result<(), SettleError> {
        self.client.ask(SettleApart { queue: self.queue.clone(), token: self.token }).await
    }

    /// Prolongs the lock by the queue's lock time from now, and says until when.
    ///
    /// # Errors
    /// As [`AcceptedWorkflow::set_state`].
    pub async fn renew(&mut self) -> Result<Timestamp, SettleError> {
        self.locked_until = self.renewal().renew().await?;
        Ok(self.locked_until)
    }

    /// A handle that can only renew the lock.
    pub fn renewal(&self) -> Renewal {
        Renewal::new(self.client.clone(), self.queue.clone(), self.token)
    }

    /// Gives the workflow back, and what is unsettled as if it had not been handed out.
    ///
    /// # Errors
    /// As [`AcceptedWorkflow::set_state`].
    pub async fn close(mut self) -> Result<(), SettleError> {
        let command = CloseWorkflow { queue: self.queue.clone(), token: self.token };
        let closed = self.client.ask(command).await;
        // Only now: of a future that is dropped before, nobody knows whether it was heard, and of one that is answered that it was
        // not done for now nobody can ask again. To be asked twice does no harm.
        let is_open = matches!(&closed, Err(SettleError::Unavailable(why)) if !why.is_over());
        self.closed = !is_open;
        closed
    }
}

impl Drop for AcceptedWorkflow {
    fn drop(&mut self) {
        if !self.closed {
            self.client.give_back(CloseWorkflow { queue: self.queue.clone(), token: self.token });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::Context;
    use std::task::Poll;
    use std::task::Waker;

    use tokio::sync::broadcast;

    use super::*;
    use crate::engine::inbox::InboxReceiver;
    use crate::engine::inbox::Request;
    use crate::engine::inbox::inbox;
    use crate::engine::meter::CommitMeter;
    use crate::engine::rules::record::WorkflowRef;
    use crate::engine::rules::reply::Reply;
    use crate::engine::rules::reply_samples::replies;
    use crate::engine::rules::verbs::Command;
    use crate::error::Unavailable;
    use crate::limits;
    use crate::testing::ManualClock;

    /// An accepted workflow of an engine whose inbox is full.
    async fn in_a_full_inbox() -> (AcceptedWorkflow, InboxReceiver) {
        let (accepted, intake) = with_an_inbox().await;
        let bytes = limits::INBOX_MAX * limits::INBOX_PLACE_BYTES;
        let _full = accepted.client.inbox().post(Request::Wake, bytes).await.unwrap();
        (accepted, intake)
    }

    /// An accepted workflow of an engine that is played by the test.
    async fn with_an_inbox() -> (AcceptedWorkflow, InboxReceiver) {
        let (inbox, intake) = inbox();
        let clock = Arc::new(ManualClock::default());
        let meter = CommitMeter::new(clock.clone());
        let client = Client::new(inbox, 0, broadcast::channel(1).0, meter, (clock, Arc::default()), None);
        let grant = WorkflowGrant {
            token: LockToken::new(1, [0; 12]),
            locked_until: Timestamp::default(),
            stream: WorkflowRef::Named(WorkflowId::new("w").unwrap()),
            state: None,
        };
        (AcceptedWorkflow::new(client, QueueName::new("q").unwrap(), grant), intake)
    }

    fn poll<F: Future>(asked: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        asked.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn asked(intake: &mut InboxReceiver) -> Vec<Request> {
        std::iter::from_fn(|| intake.take()).collect()
    }

    /// Whether nothing is asked but that the wait of who has left is to end.
    fn is_withdrawn_only(intake: &mut InboxReceiver) -> bool {
        matches!(asked(intake)[..], [Request::Withdraw(_)])
    }

    fn closes(asked: &&Request) -> bool {
        matches!(asked, Request::GiveBack(command) if matches!(**command, Command::CloseWorkflow(_)))
    }

    /// A message that is handed out while nobody waits for it any more is given back before another is asked for: whoever receives one
    /// by one would get the one behind it first.
    #[tokio::test]
    async fn a_receive_that_was_dropped_gives_back_before_the_next_is_asked() {
        let (accepted, mut intake) = with_an_inbox().await;
        let handed = replies().into_iter().find(|reply| matches!(reply, Reply::Receive(Ok(_)))).unwrap();
        let letter = {
            let mut first = pin!(accepted.receive(1, Duration::MAX));
            assert!(poll(first.as_mut()).is_pending());
            let Some(Request::Ask(letter)) = intake.take() else { panic!("nothing is asked") };
            // From here to its commit.
            assert!(letter.answer(handed));
            letter
        };
        let mut second = pin!(accepted.receive(1, Duration::MAX));
        assert!(poll(second.as_mut()).is_pending());
        assert!(is_withdrawn_only(&mut intake), "it is not asked while the first is under way");
        letter.publish(&mut |command| accepted.client.inbox().give_back(command));
        assert!(poll(second.as_mut()).is_pending());
        let asked = asked(&mut intake);
        assert!(matches!(asked[..], [Request::GiveBack(_), Request::Ask(_)]), "{} are asked", asked.len());
    }

    /// As on a cluster, where nothing is known of what was handed out before all of the answer is back.
    #[tokio::test]
    async fn a_receive_that_was_dropped_while_it_is_done_elsewhere_gives_back_before_the_next_is_asked() {
        let (accepted, mut intake) = with_an_inbox().await;
        let handed = replies().into_iter().find(|reply| matches!(reply, Reply::Receive(Ok(_)))).unwrap();
        for reply in [Some(handed), None] {
            let letter = {
                let mut first = pin!(accepted.receive(1, Duration::MAX));
                assert!(poll(first.as_mut()).is_pending());
                let Some(Request::Ask(letter)) = intake.take() else { panic!("nothing is asked") };
                assert!(letter.command().is_some());
                letter
            };
            let mut second = pin!(accepted.receive(1, Duration::MAX));
            assert!(poll(second.as_mut()).is_pending());
            assert!(is_withdrawn_only(&mut intake), "it is not asked while the first is under way");
            let gives_back = reply.is_some();
            match reply {
                Some(reply) => {
                    assert!(letter.answer(reply));
                    letter.publish(&mut |command| accepted.client.inbox().give_back(command));
                }
                None => letter.fail(Unavailable::NotOwner),
            }
            assert!(poll(second.as_mut()).is_pending());
            let asked = asked(&mut intake);
            assert!(matches!(asked.last(), Some(Request::Ask(_))));
            assert_eq!(asked.len(), 1 + usize::from(gives_back));
        }
    }

    #[tokio::test]
    async fn a_receive_that_was_dropped_before_it_was_heard_is_done_nowhere_else() {
        let (accepted, mut intake) = with_an_inbox().await;
        assert!(poll(pin!(accepted.receive(1, Duration::MAX))).is_pending());
        let Some(Request::Ask(letter)) = intake.take() else { panic!("nothing is asked") };
        assert!(letter.command().is_none());
    }

    #[tokio::test]
    async fn a_receive_that_was_dropped_before_it_was_heard_keeps_nobody_waiting() {
        let (accepted, mut intake) = with_an_inbox().await;
        assert!(poll(pin!(accepted.receive(1, Duration::MAX))).is_pending());
        assert!(poll(pin!(accepted.receive(1, Duration::MAX))).is_pending());
        assert_eq!(asked(&mut intake).len(), 2);
    }

    #[tokio::test]
    async fn a_close_that_is_answered_that_nothing_was_done_is_asked_once_more() {
        let (accepted, mut intake) = with_an_inbox().await;
        let mut closing = pin!(accepted.close());
        assert!(poll(closing.as_mut()).is_pending());
        let Some(Request::Ask(letter)) = intake.take() else { panic!("nothing is asked") };
        letter.fail(Unavailable::nonsense());
        assert!(poll(closing.as_mut()).is_ready());
        assert_eq!(asked(&mut intake).iter().filter(closes).count(), 1);
    }

    #[tokio::test]
    async fn a_close_that_is_dropped_while_it_waits_for_room_gives_the_workflow_back_all_the_same() {
        let (accepted, mut intake) = in_a_full_inbox().await;
        {
            let mut closing = pin!(accepted.close());
            assert!(poll(closing.as_mut()).is_pending());
        }
        assert_eq!(asked(&mut intake).iter().filter(closes).count(), 1);
    }
}
