//! Senders: messages in order, ahead of their turn, twice, too late, and again because no answer came.

use std::time::Duration;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::crash::story;
use crate::engine::tests::simulation::client::clients::Clients;
use crate::id::MessageId;
use crate::id::Position;
use crate::id::QueueName;
use crate::id::WorkflowId;
use crate::limits;
use crate::message::KeptBack;
use crate::message::NewMessage;
use crate::message::Place;
use crate::queue::Order;

/// How far a sender has come in one workflow of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    next: u64,
}

impl Clients {
    /// Sends something: all or none, each for itself, or under an idempotency key.
    pub(crate) fn send(&mut self, queue: usize, now: Timestamp) -> Command {
        let name = self.queues[queue].0.clone();
        match self.random.below(100) {
            0..70 => Command::Send(verbs::Send { queue: name, messages: self.messages(queue, now) }),
            70..85 => Command::SendEach(verbs::SendEach { queue: name, messages: self.messages(queue, now) }),
            _ => self.send_once(queue, now),
        }
    }

    /// Under a key that is new, one that was used, or the last request again.
    fn send_once(&mut self, queue: usize, now: Timestamp) -> Command {
        if let Some(again) = self.last_once.clone().filter(|_| self.random.chance(50)) {
            return again;
        }
        let key = story::key(self.random.below(story::KEYS), self.random.below(2));
        let messages = self.messages(queue, now);
        let command =
            Command::SendOnce(verbs::SendOnce { queue: self.queues[queue].0.clone(), key, messages });
        self.last_once = Some(command.clone());
        command
    }

    /// One to three messages for one queue, or more than one step takes.
    pub(crate) fn messages(&mut self, queue: usize, now: Timestamp) -> Vec<NewMessage> {
        let count = match self.is_bulky && self.random.chance(10) {
            true => self.random.pick(&[limits::SWEEP_MAX, limits::SWEEP_MAX + 1, limits::SEND_BATCH_MAX]),
            false => self.random.pick(&[1, 1, 1, 2, 3]),
        };
        let mut messages: Vec<NewMessage> = (0..count).map(|_| self.message(queue, now)).collect();
        if self.random.chance(25) {
            // On their way they have overtaken each other.
            messages.reverse();
        }
        messages
    }

    fn message(&mut self, queue: usize, now: Timestamp) -> NewMessage {
        let order = self.queues[queue].1;
        let workflow = self.random.below(self.workflows);
        let workflow_id = (order == Order::After || self.random.chance(92)).then(|| workflow_id(workflow));
        let (place, place_number) = match (order, &workflow_id) {
            (Order::Position { first }, Some(_)) => {
                let number = self.place(queue, workflow, first.get());
                (Place::Position(Position::new(number).expect("a small number")), number)
            }
            (Order::After, Some(_)) => {
                let number = self.place(queue, workflow, 1);
                (Place::After(self.predecessor(workflow, number)), number)
            }
            _ => (Place::Arrival, self.random.below(6)),
        };
        let has_id = order == Order::After && self.random.below(200) > 0 || self.random.chance(40);
        let message_id = has_id.then(|| message_id(workflow, place_number));
        NewMessage {
            workflow_id,
            place: if self.random.chance(1) { Place::Arrival } else { place },
            message_id,
            time_to_live: self.time_to_live(),
            kept_back: self.kept_back(now),
            headers: Default::default(),
            body: Bytes::from_static(self.random.pick(&[b"a", b"a", b"a", b"b"])),
        }
    }

    fn kept_back(&mut self, now: Timestamp) -> Option<KeptBack> {
        let span = self.random.chance(20).then(|| self.delay())?;
        Some(if self.random.chance(70) { KeptBack::Until(now + span) } else { KeptBack::For(span) })
    }

    /// Nearly always the message before. A sender that is mistaken names one that comes later, and perhaps names this one in
    /// turn, one that has been followed long ago, or none.
    fn predecessor(&mut self, workflow: u64, number: u64) -> Option<MessageId> {
        let before = match self.random.below(100) {
            0..3 => number + 1 + self.random.below(2),
            3..5 => number.saturating_sub(2 + self.random.below(3)),
            5 => 0,
            _ => number - 1,
        };
        (before > 0).then(|| message_id(workflow, before))
    }

    fn time_to_live(&mut self) -> Option<Duration> {
        self.random.chance(8).then(|| Duration::from_millis(self.random.pick(&[1, 1_000, 5_000, 20_000])))
    }

    /// Mostly the next place; sometimes one ahead, so that there is a gap, or one that was sent before.
    fn place(&mut self, queue: usize, workflow: u64, first: u64) -> u64 {
        let next = self.progress.entry((queue, workflow)).or_insert(Progress { next: first });
        let number = match self.random.below(100) {
            0..68 => next.next,
            68..82 => next.next + 1 + self.random.below(2),
            82..98 => {
                let back = 1 + self.random.below(5);
                return next.next.saturating_sub(back).max(first);
            }
            // Skipped for good, or left for later.
            _ => next.next + 3,
        };
        // One that was sent ahead leaves the places before it to be sent: half of the time nobody remembers.
        if number == next.next || self.random.chance(50) {
            next.next = number + 1;
        }
        number
    }

    /// Begins the places of a queue anew: it was made anew.
    pub(crate) fn forget_places(&mut self, name: &QueueName) {
        let queues = &self.queues;
        self.progress.retain(|(queue, _), _| queues[*queue].0 != *name);
    }
}

pub(crate) fn workflow_id(number: u64) -> WorkflowId {
    WorkflowId::new(format!("w{number}")).expect("a good ID")
}

fn message_id(workflow: u64, number: u64) -> MessageId {
    MessageId::new(format!("m{workflow}-{number}")).expect("a good ID")
}
