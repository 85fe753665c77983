//! Schedules that run: each is a workflow of a queue of the daemon's own, whose one message comes due with the next
//! tick.
//!
//! Handling it is one transaction: the ticks that are due are sent, the instant up to which they are handled becomes the
//! workflow's state, and the message for the next tick is scheduled. So a tick is neither lost nor sent twice, whenever
//! the process dies. On a cluster a tick may be of another partition: it is sent before that, once under a key of its
//! instant, so that whoever handles the message again sends it no second time.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::daemon::membership::Membership;
use crate::definition::ScheduleDefinition;
use crate::engine::Abandon;
use crate::engine::Client;
use crate::engine::Completion;
use crate::engine::MessageStatus;
use crate::engine::MessageView;
use crate::engine::Queue;
use crate::error::Error;
use crate::error::Misuse;
use crate::error::OperateError;
use crate::error::OperateRefusal;
use crate::error::QueueError;
use crate::error::SendError;
use crate::id::IdempotencyKey;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::intake::Intake;
use crate::limits;
use crate::message::Message;
use crate::own_queues::SCHEDULES_QUEUE;
use crate::processor::Context;
use crate::processor::Failure;
use crate::processor::Handler;
use crate::processor::Outcome;
use crate::processor::Processor;
use crate::processor::Raw;
use crate::processor::Running;
use crate::queue::QueueOptions;

/// A schedule, and the queue it sends to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ticking {
    pub(crate) queue: QueueName,
    pub(crate) schedule: ScheduleDefinition,
}

impl Ticking {
    /// The workflow it is.
    pub(crate) fn id(&self) -> String {
        format!("{}/{}", self.queue, self.schedule.name)
    }

    /// When it ticks, in words that are compared.
    fn rhythm(&self) -> String {
        format!("{} in {}", self.schedule.cron.line(), self.schedule.cron.time_zone())
    }
}

/// What a schedule's workflow keeps.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct TickerState {
    /// Ticks up to this instant are handled.
    handled_through_ms: u64,
    /// The last tick that was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_ms: Option<u64>,
    /// By which line and time zone it ticked; none in what an older version has written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rhythm: Option<String>,
}

impl TickerState {
    /// Of a schedule that has handled everything until now.
    fn begin(ticking: &Ticking, now: Timestamp, last_ms: Option<u64>) -> TickerState {
        TickerState { handled_through_ms: now.as_millis(), last_ms, rhythm: Some(ticking.rhythm()) }
    }

    /// The same for a schedule as it is now: of a line that was another one before it has missed nothing.
    fn heeds(self, ticking: &Ticking, now: Timestamp) -> TickerState {
        let is_other = self.rhythm.as_ref().is_some_and(|rhythm| *rhythm != ticking.rhythm());
        match is_other || self.is_ahead(now) {
            true => TickerState::begin(ticking, now, self.last_ms),
            false => TickerState { rhythm: Some(ticking.rhythm()), ..self },
        }
    }

    /// Whether it stays as it is for a schedule as it is now.
    fn stands(&self, ticking: &Ticking, now: Timestamp) -> bool {
        self.rhythm.as_ref() == Some(&ticking.rhythm()) && !self.is_ahead(now)
    }

    /// Whether the clock was set back by more than drift since: until it came there again, nothing would tick.
    fn is_ahead(&self, now: Timestamp) -> bool {
        self.handled_through().since(now) > limits::CLOCK_STEP
    }

    fn handled_through(&self) -> Timestamp {
        Timestamp::from_millis(self.handled_through_ms)
    }
}

/// The schedules that run.
#[derive(Clone)]
pub(crate) struct Ticker {
    shared: Arc<TickerContext>,
}

struct TickerContext {
    queue: Queue,
    intake: Intake,
    membership: Membership,
    schedules: ArcSwap<BTreeMap<String, Arc<Ticking>>>,
}

impl Ticker {
    /// Opens the queue of the schedules; none runs yet.
    pub(crate) async fn open(
        client: &Client,
        intake: Intake,
        membership: Membership,
    ) -> Result<Ticker, Error> {
        let options = QueueOptions { delivery_count_max: u32::MAX, ..QueueOptions::default() };
        let queue = client.own_queue(SCHEDULES_QUEUE, options).await?;
        let schedules = ArcSwap::default();
        Ok(Ticker { shared: Arc::new(TickerContext { queue, intake, membership, schedules }) })
    }

    /// Lets these schedules run, and no others. What a schedule has handled already it keeps.
    pub(crate) async fn replace(&self, schedules: Vec<Ticking>) -> Result<(), Error> {
        let shared = &self.shared;
        let schedules: BTreeMap<_, _> =
            schedules.into_iter().map(|ticking| (ticking.id(), Arc::new(ticking))).collect();
        shared.schedules.store(Arc::new(schedules));
        self.look_after(true).await
    }

    /// Sees to it that each schedule has its message, and that there are no others: somebody may have purged the queue.
    pub(crate) async fn see_to(&self) -> Result<(), Error> {
        self.look_after(false).await
    }

    /// With `anew`, one that failed is tried again at once: what made it fail may have been mended.
    async fn look_after(&self, anew: bool) -> Result<(), Error> {
        let shared = &self.shared;
        let schedules = shared.schedules.load_full();
        let mut pending = shared.pending().await?;
        for (id, ticking) in schedules.iter() {
            // On a cluster one node does it: that which has the schedule's partition, once that answers.
            if !shared.membership.answers_for(shared.queue.name(), &WorkflowId::new(id)?) {
                pending.remove(id);
                continue;
            }
            match shared.arm(id, ticking, pending.remove(id).unwrap_or_default(), anew).await {
                Err(error) if error.is_of_full_disk() => {
                    tracing::warn!(schedule = id, %error, "a schedule goes on as it is until there is room");
                }
                armed => armed?,
            }
        }
        for message in pending.into_values().flatten() {
            let id = message.workflow_id.as_ref();
            if id.is_none_or(|id| shared.membership.answers_for(shared.queue.name(), id)) {
                shared.withdraw(&message).await?;
                if !shared.membership.is_of_cluster() {
                    shared.forget(&message).await?;
                }
            }
        }
        Ok(())
    }

    /// The queue in which schedules live.
    #[cfg(test)]
    pub(crate) fn queue(&self) -> Queue {
        self.shared.queue.clone()
    }

    /// Handles ticks in the background, until it is stopped.
    pub(crate) fn start(&self) -> Running {
        Processor::new(self.shared.queue.clone()).start(self.clone())
    }

    /// The schedules with their next ticks.
    pub(crate) fn next_ticks(&self, count: usize) -> Vec<(Arc<Ticking>, Vec<Timestamp>)> {
        let now = self.shared.queue.client().wall_now();
        let schedules = self.shared.schedules.load();
        let next = |ticking: &Arc<Ticking>| {
            (ticking.clone(), ticking.schedule.cron.ticks_between(now, Timestamp::MAX, count))
        };
        schedules.values().map(next).collect()
    }

    /// A schedule of a queue, by its name.
    pub(crate) fn find(&self, queue: &QueueName, name: &str) -> Option<Arc<Ticking>> {
        let schedules = self.shared.schedules.load();
        schedules.values().find(|ticking| ticking.queue == *queue && ticking.schedule.name == name).cloned()
    }

    /// The last tick a schedule has sent; none when it has not sent any.
    pub(crate) async fn last_tick(&self, ticking: &Ticking) -> Result<Option<Timestamp>, QueueError> {
        let state = self.shared.queue.workflow(ticking.id())?.state().await?;
        let ticker_state = state.map(|state| read_state(&state)).transpose()?;
        Ok(ticker_state.and_then(|ticker_state| ticker_state.last_ms).map(Timestamp::from_millis))
    }
}

impl TickerContext {
    /// The messages that are looked after here, and wait for a tick or are being handled, by schedule.
    async fn pending(&self) -> Result<BTreeMap<String, Vec<MessageView>>, Error> {
        let mut pending: BTreeMap<String, Vec<MessageView>> = BTreeMap::new();
        for client in self.membership.clients(self.queue.client()) {
            let (queue, mut from) = (client.queue(SCHEDULES_QUEUE)?, SequenceNumber::new(0));
            while let page = self.membership.look(queue.peek(from, limits::PAGE_MAX)).await?
                && let Some(last) = page.last()
            {
                from = last.sequence_number.next();
                for message in page {
                    if let Some(id) = &message.workflow_id {
                        pending.entry(id.to_string()).or_default().push(message);
                    }
                }
            }
        }
        Ok(pending)
    }

    /// Sees to it that one message waits for the schedule's next tick.
    async fn arm(
        &self,
        id: &str,
        ticking: &Ticking,
        pending: Vec<MessageView>,
        anew: bool,
    ) -> Result<(), Error> {
        let (workflow, now) = (self.queue.workflow(id)?, self.queue.client().wall_now());
        let known = workflow.state().await?.map(|state| read_state(&state)).transpose()?;
        let is_known = known.as_ref().is_some_and(|known| known.stands(ticking, now));
        let ticker_state = match known {
            Some(known) => known.heeds(ticking, now),
            None => TickerState::begin(ticking, now, None),
        };
        if !is_known {
            match workflow.set_state(Some(write_state(&ticker_state)?)).await {
                // Whoever handles its message sees for himself that it has changed.
                Ok(()) | Err(OperateError::Refused(OperateRefusal::WorkflowLocked)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let next = ticking.schedule.cron.next_after(ticker_state.handled_through());
        let (mut is_armed, mut superfluous) = (false, Vec::new());
        for message in pending {
            match message.status {
                MessageStatus::Scheduled { until } if is_armed || next != Some(until) => {
                    superfluous.push(message);
                }
                MessageStatus::Scheduled { .. } => is_armed = true,
                // It is being handled or tried again, and will look at the schedule as it is then.
                _ => {
                    is_armed = true;
                    if anew {
                        let _ = workflow.retry_now().await;
                    }
                }
            }
        }
        if let (Some(next), false) = (next, is_armed) {
            self.queue.send(Message::new("").workflow(id).schedule_at(next)).await?;
        }
        // Only now: a schedule without a message would not tick.
        for message in superfluous {
            self.withdraw(&message).await?;
        }
        Ok(())
    }

    /// Takes back a message that waits for its tick. One that is being handled finds out by itself.
    async fn withdraw(&self, message: &MessageView) -> Result<(), Error> {
        match self.queue.cancel(message.sequence_number).await {
            Ok(()) | Err(SendError::Refused(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Forgets what the schedule of a message has handled, as there is none any more: one of that name will be new.
    async fn forget(&self, message: &MessageView) -> Result<(), Error> {
        let Some(id) = &message.workflow_id else { return Ok(()) };
        match self.queue.workflow(id.as_str())?.set_state(None).await {
            Ok(()) | Err(OperateError::Refused(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What one look at a schedule leads to.
    async fn tick(&self, ticking: &Ticking, ticker_state: TickerState) -> Result<Completion, Failure> {
        let (now, handled_through) = (self.queue.client().wall_now(), ticker_state.handled_through());
        let due_within =
            |limit| ticking.schedule.missed.due(&ticking.schedule.cron, handled_through, now, limit);
        let all_due = due_within(limits::TICKS_AT_ONCE);
        let due = match self.room_for(ticking, all_due.ticks.len()).await? {
            Some(room) => due_within(room),
            None => all_due,
        };
        let last_ms = due.ticks.last().map(|tick| tick.as_millis()).or(ticker_state.last_ms);
        let handled = TickerState::begin(ticking, due.handled_through, last_ms);
        let mut completion = Completion::new().state(write_state(&handled)?);
        for tick in due.ticks {
            let message = self.intake.place(&ticking.queue, ticking.schedule.message(tick))?;
            match self.membership.is_of_cluster() {
                true => self.send_once(ticking, tick, message).await?,
                false => completion = completion.send(ticking.queue.as_str(), message),
            }
        }
        let next = match due.is_more {
            true => Some(now),
            false => ticking.schedule.cron.next_after(due.handled_through),
        };
        Ok(match next {
            Some(next) => {
                completion.send(SCHEDULES_QUEUE, Message::new("").workflow(ticking.id()).schedule_at(next))
            }
            None => completion,
        })
    }
}

impl TickerContext {
    /// How many ticks the queue has room for now, if that is less than so many, which are sent together or not at all; never none, so
    /// that one which has to wait is refused and tried again.
    async fn room_for(&self, ticking: &Ticking, ticks: usize) -> Result<Option<usize>, Failure> {
        // On a cluster each is sent by itself.
        if ticks <= 1 || self.membership.is_of_cluster() {
            return Ok(None);
        }
        let queue = self.queue.client().queue(&ticking.queue)?;
        let Some(view) = queue.view_if_any().await? else { return Ok(None) };
        let room = view.options.messages_max.saturating_sub(view.counts.limited());
        let room = usize::try_from(room).unwrap_or(usize::MAX).max(1);
        Ok((room < ticks).then_some(room))
    }

    /// Sends a tick, unless it was sent before.
    async fn send_once(&self, ticking: &Ticking, tick: Timestamp, message: Message) -> Result<(), Failure> {
        let name = &ticking.schedule.name;
        let mut text = format!("tick/{}/{name}", tick.as_millis());
        text.truncate(text.floor_char_boundary(limits::IDEMPOTENCY_KEY_BYTES_MAX));
        let key = IdempotencyKey::of_request(text, name.as_bytes())?;
        self.queue.client().queue(&ticking.queue)?.send_batch_once(key, [message]).await?;
        Ok(())
    }
}

impl Handler<Raw> for Ticker {
    async fn handle(&self, context: Context, _body: Raw) -> Result<Outcome, Failure> {
        let Some(id) = context.message().workflow_id.clone() else { return Ok(Outcome::Complete) };
        let Some(ticking) = self.shared.schedules.load().get(id.as_str()).cloned() else {
            // On a cluster the node that has it may know a schedule which this one has not heard of yet.
            return Ok(match self.shared.membership.is_of_cluster() {
                true => Outcome::Complete,
                false => Outcome::CompleteWith(Completion::new().clear_state()),
            });
        };
        // What ticks send is new, although it is sent with a completion: it waits until there is room for it.
        if self.shared.queue.client().storage_room().is_some_and(|room| room.is_full) {
            return Ok(Outcome::Abandon(Abandon::after(limits::TICK_WAITS_FOR_ROOM)));
        }
        let now = self.shared.queue.client().wall_now();
        let ticker_state = match context.state().await? {
            Some(state) => read_state(&state)?.heeds(&ticking, now),
            None => TickerState::begin(&ticking, now, None),
        };
        Ok(Outcome::CompleteWith(self.shared.tick(&ticking, ticker_state).await?))
    }
}

fn read_state(state: &[u8]) -> Result<TickerState, Misuse> {
    serde_json::from_slice(state).map_err(|error| Misuse::new("state of a schedule", error.to_string()))
}

fn write_state(ticker_state: &TickerState) -> Result<Bytes, Misuse> {
    let written = serde_json::to_vec(ticker_state)
        .map_err(|error| Misuse::new("state of a schedule", error.to_string()))?;
    Ok(Bytes::from(written))
}
