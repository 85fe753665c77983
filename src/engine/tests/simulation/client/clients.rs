//! All clients together: what they know, and what one of them asks next.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::rules::claim::Claim;
use crate::engine::rules::record::Status;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::topic_record::TopicChange;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::crash::random::Random;
use crate::engine::tests::crash::rows::Rows;
use crate::engine::tests::simulation::client::queues;
use crate::engine::tests::simulation::client::sender::Progress;
use crate::engine::tests::simulation::client::topics::TOPICS_EVERY;
use crate::engine::tests::simulation::client::topics::Topics;
use crate::engine::tests::simulation::ledger::Ledger;
use crate::engine::tests::simulation::plain::Question;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::token::LockToken;

/// One of so many simulations is bulky: it takes a hundred times as long.
const BULKY_EVERY: u64 = 250;

/// A delivery as its receiver knows it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Delivery {
    pub(crate) queue: QueueName,
    pub(crate) token: LockToken,
    pub(crate) sequence: SequenceNumber,
    pub(crate) delivery_count: u32,
}

/// The clients.
pub(crate) struct Clients {
    pub(crate) random: Random,
    /// Those of subscriptions, too.
    pub(crate) queues: Vec<(QueueName, Order)>,
    pub(crate) topics: Topics,
    /// Whether hundreds of messages are sent at once, so that what is done in steps takes several.
    pub(crate) is_bulky: bool,
    /// How many workflows a queue has.
    pub(crate) workflows: u64,
    pub(crate) epoch: u32,
    pub(crate) tokens: u64,
    pub(crate) progress: BTreeMap<(usize, u64), Progress>,
    pub(crate) held: Vec<Delivery>,
    /// Deliveries that were settled or lost; somebody may try again.
    pub(crate) lost: Vec<Delivery>,
    /// Deliveries of a workflow that its holder is about to give back, one after another.
    pub(crate) giving_back: Vec<Delivery>,
    /// The last settlements; somebody may not have heard the answer, and ask again.
    pub(crate) settling: Vec<Command>,
    pub(crate) taken: Vec<(QueueName, LockToken)>,
    /// Sends that were not answered, to be sent again.
    unanswered: Vec<Command>,
    /// The last send under an idempotency key, to be sent again although it was answered.
    pub(crate) last_once: Option<Command>,
    /// The next step of a purge that is not done.
    purging: Option<Command>,
    /// Claims on messages that were hidden, the last one last; most are void.
    pub(crate) claims: Vec<(QueueName, Claim)>,
    /// Deliveries of dead letters, some of them void.
    pub(crate) dead_letters: Vec<Delivery>,
}

impl Clients {
    pub(crate) fn new(seed: u64) -> Clients {
        let mut random = Random::new(seed);
        let mut queues = queues::queues(&mut random);
        let is_bulky = seed % BULKY_EVERY == BULKY_EVERY - 1;
        let has_topics = seed.is_multiple_of(TOPICS_EVERY) && !is_bulky;
        let (topics, subscriptions) = Topics::new(has_topics, &mut random);
        queues.extend(subscriptions);
        let workflows = random.pick(&[1, 2, 2, 3]);
        Clients {
            random,
            is_bulky,
            queues,
            topics,
            workflows,
            epoch: 1,
            tokens: 0,
            progress: BTreeMap::new(),
            held: Vec::new(),
            lost: Vec::new(),
            giving_back: Vec::new(),
            settling: Vec::new(),
            taken: Vec::new(),
            unanswered: Vec::new(),
            last_once: None,
            claims: Vec::new(),
            dead_letters: Vec::new(),
            purging: None,
        }
    }

    /// Makes every queue.
    pub(crate) fn open(&mut self) -> Vec<Command> {
        let mut made = self.open_topics();
        made.extend((0..self.queues.len()).map(|queue| self.make(queue)));
        made
    }

    /// Options of a queue of this order.
    pub(crate) fn options(&mut self, order: Order) -> Box<QueueOptions> {
        let options = queues::options(order, &mut self.random);
        let times = if self.is_bulky { 4 } else { 1 };
        let (messages_max, dead_letters_max) =
            (options.messages_max * times, options.dead_letters_max * times);
        Box::new(QueueOptions { messages_max, dead_letters_max, ..options })
    }

    /// What somebody asks next, and how long he would wait for it.
    pub(crate) fn ask(&mut self, number: u64, rows: &Rows, ledger: &Ledger, now: Timestamp) -> Question {
        let queue = self.index(self.queues.len());
        let command = self.command(rows, ledger, now, queue);
        let wait =
            self.random.chance(25).then(|| Duration::from_millis(self.random.pick(&[0, 1, 1_000, 20_000])));
        Question { number: Some(number), command, wait, is_gone: self.random.chance(2) }
    }

    fn command(&mut self, rows: &Rows, ledger: &Ledger, now: Timestamp, queue: usize) -> Command {
        let name = self.queues[queue].0.clone();
        if !ledger.queues.contains_key(&name) && self.random.chance(50) {
            return self.make(queue);
        }
        if let (true, Some(again)) = (self.random.chance(50), self.unanswered.pop()) {
            return again;
        }
        if let Some(step) = self.purging.clone() {
            return step;
        }
        if let (true, Some(asked)) = (self.random.chance(20), self.use_topics(rows, now)) {
            return asked;
        }
        let asked = match self.random.below(100) {
            0..28 => Some(self.send(queue, now)),
            28..52 => Some(self.receive(rows, queue)),
            52..54 => Some(self.call_off(rows, queue, now)),
            54..80 => self.settle(ledger, now),
            80..86 => self.use_taken(rows),
            86..89 => Some(self.hide(queue)),
            89..91 => self.use_claim(),
            91..95 => Some(self.use_dead_letters(rows, queue)),
            _ => {
                let command = self.operate(rows, queue, now);
                Some(self.put_on_record(command))
            }
        };
        asked.unwrap_or_else(|| self.receive(rows, queue))
    }

    /// Takes note of an answer.
    pub(crate) fn record(&mut self, command: &Command, reply: &Reply) {
        self.record_hidden(command, reply);
        self.record_dead_letters(command, reply);
        self.record_of_topics(command, reply);
        match (command, reply) {
            (
                Command::Receive(verbs::Receive { queue, .. })
                | Command::ReceiveRun(verbs::ReceiveRun { queue, .. })
                | Command::ReceiveDeferred(verbs::ReceiveDeferred { queue, .. })
                | Command::ReceiveFromWorkflow(verbs::ReceiveFromWorkflow { queue, .. })
                | Command::ReceiveDeferredFromWorkflow(verbs::ReceiveDeferredFromWorkflow { queue, .. }),
                Reply::Receive(Ok(handed)),
            ) => {
                let deliveries = handed.iter().map(|handed| Delivery {
                    queue: queue.clone(),
                    token: handed.token,
                    sequence: handed.sequence,
                    delivery_count: handed.record.delivery_count,
                });
                self.held.extend(deliveries);
            }
            (
                Command::AcceptWorkflow(verbs::AcceptWorkflow { queue, .. }),
                Reply::AcceptWorkflow(Ok(Some(taken))),
            ) => {
                self.taken.push((queue.clone(), taken.token));
            }
            (Command::CreateQueue(verbs::CreateQueue { name, .. }), Reply::Queue(Ok(true))) => {
                self.forget_places(name)
            }
            (
                Command::ChangeTopic(verbs::ChangeTopic {
                    name,
                    change: TopicChange::Subscribe { name: own, .. },
                }),
                Reply::Topic(Ok(true)),
            ) => self.forget_places(&QueueName::of_subscription(name, own).expect("a plain name")),
            (Command::Purge(verbs::Purge { queue, scope, .. }), Reply::Purge(answer)) => {
                let next = answer.as_ref().ok().and_then(|purged| purged.next.clone());
                let step =
                    |from| Command::Purge(verbs::Purge { queue: queue.clone(), scope: scope.clone(), from });
                self.purging = next.map(step);
            }
            _ => {}
        }
    }

    /// The engine has lost its process: some of its clients do not know yet. What was asked of it was not answered.
    pub(crate) fn record_of_crash(&mut self, asked: Vec<Command>, epoch: u32) {
        self.epoch = epoch;
        self.lost.extend(self.held.drain(..).take(2));
        self.lost.truncate(6);
        self.taken.truncate(1);
        let is_send = |command: &Command| {
            matches!(
                command,
                Command::Send(_)
                    | Command::SendEach(_)
                    | Command::SendOnce(_)
                    | Command::Publish(_)
                    | Command::PublishOnce(_)
            )
        };
        self.unanswered.extend(asked.into_iter().filter(is_send));
    }

    /// A message that is as wanted, if there is one; sometimes any number.
    pub(crate) fn number(
        &mut self,
        rows: &Rows,
        queue: usize,
        is_wanted: impl Fn(&Status) -> bool,
    ) -> SequenceNumber {
        let name = &self.queues[queue].0;
        let id = rows.queues.values().find(|queue| queue.name == *name).map(|queue| queue.id);
        let wanted =
            rows.messages.iter().filter(|(key, message)| Some(key.queue) == id && is_wanted(&message.status));
        let wanted: Vec<SequenceNumber> = wanted.map(|(key, _)| key.sequence).collect();
        match wanted.is_empty() || self.random.chance(10) {
            true => SequenceNumber::new(self.random.below(60)),
            false => self.random.pick(&wanted),
        }
    }

    pub(crate) fn index(&mut self, end: usize) -> usize {
        usize::try_from(self.random.below(end as u64)).expect("a small number")
    }
}
