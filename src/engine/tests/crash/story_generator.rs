//! Makes up what is asked next, from chance and from what was answered before.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::rules::Rules;
use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::HandoverSource;
use crate::engine::rules::command::LockedMessage;
use crate::engine::rules::command::Operation;
use crate::engine::rules::command::PurgeFrom;
use crate::engine::rules::command::PurgeScope;
use crate::engine::rules::command::Retry;
use crate::engine::rules::command::RunSettlement;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::command::StateChange;
use crate::engine::rules::due::DeferralEnd;
use crate::engine::rules::output::Output;
use crate::engine::rules::record::Status;
use crate::engine::rules::records::Records;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::crash::play::Turn;
use crate::engine::tests::crash::random::Random;
use crate::engine::tests::crash::random_messages;
use crate::engine::tests::crash::random_messages::QUEUES;
use crate::engine::tests::crash::rows::Rows;
use crate::engine::tests::crash::story;
use crate::engine::upcoming::first_reminders;
use crate::id::Position;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::message::NewMessage;
use crate::queue::HoldKind;
use crate::queue::Order;
use crate::token::LockToken;

/// When a story begins.
const START: Timestamp = Timestamp::from_millis(1_000_000);
/// Most commands in one turn.
const COMMANDS: u64 = 4;
/// Most messages in one receive and in one send.
const MESSAGES: u64 = 4;
/// A token has neighbours, one for each workflow of a receive; the next token is beyond them.
const NEIGHBOURS: u64 = 16;

/// A message somebody holds, or held before the lock was lost.
#[derive(Clone, Debug)]
struct Held {
    queue: QueueName,
    token: LockToken,
    sequence: SequenceNumber,
    delivery_count: u32,
}

/// Who makes a story up.
pub(crate) struct StoryGenerator {
    pub(crate) random: Random,
    pub(crate) now: Timestamp,
    tokens: u64,
    held: Vec<Held>,
    taken: Vec<(QueueName, LockToken)>,
    /// The next sequence number: those below were given.
    next_sequence: u64,
}

impl StoryGenerator {
    pub(crate) fn new(seed: u64) -> StoryGenerator {
        let random = Random::new(seed);
        StoryGenerator {
            random,
            now: START,
            tokens: 0,
            held: Vec::new(),
            taken: Vec::new(),
            next_sequence: 1,
        }
    }

    /// After a restart nobody holds anything; some still believe they do.
    pub(crate) fn forget_deliveries(&mut self) {
        self.held.truncate(2);
        self.taken.truncate(1);
    }

    /// Takes note of what was handed out.
    pub(crate) fn note(&mut self, turn: &Turn, replies: &[Reply]) {
        for (command, reply) in turn.commands.iter().zip(replies) {
            match (command, reply) {
                (
                    Command::Receive(verbs::Receive { queue, .. })
                    | Command::ReceiveRun(verbs::ReceiveRun { queue, .. })
                    | Command::ReceiveDeferred(verbs::ReceiveDeferred { queue, .. })
                    | Command::ReceiveFromWorkflow(verbs::ReceiveFromWorkflow { queue, .. })
                    | Command::ReceiveDeferredFromWorkflow(verbs::ReceiveDeferredFromWorkflow {
                        queue, ..
                    }),
                    Reply::Receive(Ok(handed)),
                ) => self.held.extend(handed.iter().map(|handed| held(queue, handed))),
                (
                    Command::AcceptWorkflow(verbs::AcceptWorkflow { queue, .. }),
                    Reply::AcceptWorkflow(Ok(Some(taken))),
                ) => {
                    self.taken.push((queue.clone(), taken.token));
                }
                _ => {}
            }
        }
    }

    pub(crate) fn next_turn(&mut self, rows: &Rows, rules: &Rules) -> Turn {
        self.advance(rows, rules);
        self.next_sequence = rows.numbers().expect("plain rows never fail").next_sequence.max(1);
        if rows.queue_count().expect("plain rows never fail") == 0 {
            let commands = QUEUES.iter().map(|(name, order)| self.create(name, *order)).collect();
            return Turn { now: self.now, commands, is_idle: false };
        }
        let count = 1 + self.random.below(COMMANDS);
        let commands = (0..count).map(|_| self.command(rows)).collect();
        Turn { now: self.now, commands, is_idle: false }
    }

    /// Moves the clock a little, or to what is due next, or just before or after it.
    fn advance(&mut self, rows: &Rows, rules: &Rules) {
        let reminders = first_reminders(rows).expect("plain rows never fail").into_iter().flatten();
        let reminder = reminders.map(|reminder| reminder.due.at()).min();
        let deadline = rules.locks().first_deadline().map(|(due, _)| due);
        let due = reminder.into_iter().chain(deadline).min().unwrap_or(self.now).as_millis();
        let target = match self.random.below(6) {
            0 => (due + self.random.below(3)).saturating_sub(1),
            _ => self.now.as_millis() + self.random.pick(&[0, 0, 1, 100, 100, 1_000, 1_000, 5_000]),
        };
        self.now = self.now.max(Timestamp::from_millis(target));
    }

    fn create(&mut self, name: &str, order: Order) -> Command {
        let options = Box::new(random_messages::queue_options(order, &mut self.random));
        Command::CreateQueue(verbs::CreateQueue { name: random_messages::queue_name(name), options })
    }

    fn token(&mut self) -> LockToken {
        self.tokens += NEIGHBOURS;
        let mut chance = [0; 12];
        chance[4..].copy_from_slice(&self.tokens.to_be_bytes());
        LockToken::new(1, chance)
    }

    /// A message that is as wanted, if there is one; sometimes any number.
    fn number(
        &mut self,
        rows: &Rows,
        queue: QueueName,
        is_wanted: fn(&Status) -> bool,
    ) -> (QueueName, SequenceNumber) {
        let mut wanted = Vec::new();
        for known in rows.queues(None, QUEUES.len()).expect("plain rows never fail") {
            let mut from = SequenceNumber::new(0);
            while let Some((sequence, message)) =
                rows.message_from(known.id, from).expect("plain rows never fail")
            {
                if is_wanted(&message.status) {
                    wanted.push((known.name.clone(), sequence));
                }
                from = sequence.next();
            }
        }
        if wanted.is_empty() || self.random.chance(10) {
            return (queue, SequenceNumber::new(self.random.below(self.next_sequence + 1)));
        }
        wanted.swap_remove(self.below(wanted.len()))
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.random.below(end as u64)).expect("a small number")
    }

    fn max(&mut self) -> usize {
        usize::try_from(1 + self.random.below(MESSAGES)).expect("a small number")
    }

    fn command(&mut self, rows: &Rows) -> Command {
        let (name, order) = self.random.pick(&QUEUES);
        let queue = random_messages::queue_name(name);
        if rows.queue_named(&queue).expect("plain rows never fail").is_none() && self.random.chance(60) {
            return self.create(name, order);
        }
        let command = match self.random.below(100) {
            0..30 => self.send(queue, order),
            30..48 => self.receive(rows, queue),
            48..76 => self.settle(rows, queue),
            76..83 => self.use_taken(rows, queue),
            83..91 => self.operate(queue),
            _ => self.change_much(rows, queue, name, order),
        };
        match command.is_operators() && self.random.chance(50) {
            true => {
                let actor = random_messages::actor();
                Command::OnRecord(Box::new(verbs::OnRecord { actor, begun: None, command }))
            }
            false => command,
        }
    }

    fn send(&mut self, queue: QueueName, order: Order) -> Command {
        let count = 1 + self.random.below(MESSAGES);
        let messages =
            (0..count).map(|_| random_messages::message(order, self.now, &mut self.random)).collect();
        match self.random.below(100) {
            0..15 => {
                let key = story::key(self.random.below(story::KEYS), self.random.below(2));
                Command::SendOnce(verbs::SendOnce { queue, key, messages })
            }
            15..25 => self.hand_over(queue, messages),
            _ => Command::Send(verbs::Send { queue, messages }),
        }
    }

    /// What the outbox of another partition hands over, often again.
    fn hand_over(&mut self, queue: QueueName, messages: Vec<NewMessage>) -> Command {
        let sequence = self.random.below(12);
        let source = HandoverSource {
            partition: story::SOURCE,
            epoch: u32::try_from(self.random.below(3)).expect("a small number"),
            number: SequenceNumber::new(sequence),
            digest: sequence,
            settled: vec![SequenceNumber::new(self.random.below(12))],
            wants_kept: self.random.chance(50),
        };
        let message = messages.into_iter().next().expect("there is one at least");
        Command::HandOver(verbs::HandOver { source, queue, message })
    }

    fn receive(&mut self, rows: &Rows, queue: QueueName) -> Command {
        let (max, token) = (self.max(), self.token());
        match self.random.below(10) {
            0..5 => Command::Receive(verbs::Receive { queue, max, token }),
            5..7 => Command::ReceiveRun(verbs::ReceiveRun { queue, max, token }),
            7 | 8 => {
                let (queue, sequence) = self.number(rows, queue, is_asked);
                Command::ReceiveDeferred(verbs::ReceiveDeferred { queue, sequences: vec![sequence], token })
            }
            _ => {
                let workflow = self.random.chance(30).then(|| random_messages::workflow_id(&mut self.random));
                Command::AcceptWorkflow(verbs::AcceptWorkflow { queue, workflow, token })
            }
        }
    }

    fn settle(&mut self, rows: &Rows, queue: QueueName) -> Command {
        if self.held.is_empty() {
            return self.receive(rows, queue);
        }
        // Mostly the last one: those before it may have been lost since.
        let index = if self.random.chance(70) { self.held.len() - 1 } else { self.below(self.held.len()) };
        let Held { queue, token, sequence, delivery_count } = self.held.remove(index);
        if self.random.chance(10) {
            return Command::Renew(verbs::Renew { queue, token });
        }
        if self.random.chance(10) {
            let settle = Command::Settle(verbs::Settle {
                queue,
                token,
                sequence,
                delivery_count,
                settlement: self.settlement(),
            });
            let (name, order) = self.random.pick(&QUEUES);
            let messages = vec![random_messages::message(order, self.now, &mut self.random)];
            let send = Command::Send(verbs::Send { queue: random_messages::queue_name(name), messages });
            return Command::Transact(verbs::Transact {
                steps: [settle, send].into_iter().filter_map(Command::into_step).collect(),
            });
        }
        if self.random.chance(15) {
            let next = self.random.chance(50).then(|| self.settlement());
            let completed = self.below(2);
            let (completion, keep_rest) = (self.completion(), self.random.chance(30));
            let settlement = RunSettlement { completed, completion, next, keep_rest, first: None };
            return Command::SettleRun(verbs::SettleRun { queue, token, settlement });
        }
        Command::Settle(verbs::Settle {
            queue,
            token,
            sequence,
            delivery_count,
            settlement: self.settlement(),
        })
    }

    fn completion(&mut self) -> CompletionCommand {
        let state = match self.random.below(4) {
            0 => StateChange::Set(random_messages::bytes(&mut self.random)),
            1 => StateChange::Clear,
            _ => StateChange::Keep,
        };
        let (name, order) = self.random.pick(&QUEUES);
        let sends = match self.random.chance(25) {
            true => {
                let message = random_messages::message(order, self.now, &mut self.random);
                vec![(random_messages::queue_name(name), vec![message])]
            }
            false => Vec::new(),
        };
        CompletionCommand { state, sends }
    }

    fn settlement(&mut self) -> Settlement {
        let soon = self.now + Duration::from_millis(self.random.pick(&[1, 1_000, 30_000]));
        let properties = random_messages::properties(&mut self.random);
        let retry = match self.random.below(4) {
            0 => Retry::Now,
            1 => Retry::After(Duration::from_secs(2)),
            2 => Retry::At(soon),
            _ => Retry::Backoff(self.random.below(1 << 40)),
        };
        match self.random.below(13) {
            0..5 => Settlement::Complete(self.completion()),
            5..7 => Settlement::Abandon {
                retry,
                reason: "busy".to_owned(),
                properties,
                output: Output::default(),
            },
            7..9 => {
                let until = match self.random.below(10) {
                    0..3 => DeferralEnd::At(soon),
                    3 => DeferralEnd::After(Duration::from_secs(2)),
                    _ => DeferralEnd::ByConsumer,
                };
                Settlement::Defer { until, properties }
            }
            9 => {
                let reason = self.random.pick(&["bad", "worse"]).to_owned();
                Settlement::DeadLetter { reason, description: "asked for".to_owned(), properties }
            }
            10 => Settlement::Suspect { retry, reason: "gone".to_owned(), output: Output::default() },
            11 => Settlement::Postpone { retry, reason: "full".to_owned() },
            _ => Settlement::Release,
        }
    }

    fn use_taken(&mut self, rows: &Rows, queue: QueueName) -> Command {
        if self.taken.is_empty() && self.random.chance(60) {
            return self.settle(rows, queue);
        }
        if self.taken.is_empty() {
            let (workflow, token) = (Some(random_messages::workflow_id(&mut self.random)), self.token());
            return Command::AcceptWorkflow(verbs::AcceptWorkflow { queue, workflow, token });
        }
        let index = self.below(self.taken.len());
        let (queue, token) = self.taken[index].clone();
        match self.random.below(10) {
            0..3 => {
                Command::ReceiveFromWorkflow(verbs::ReceiveFromWorkflow { queue, token, max: self.max() })
            }
            3..5 => {
                let (_, sequence) = self.number(rows, queue.clone(), is_asked);
                Command::ReceiveDeferredFromWorkflow(verbs::ReceiveDeferredFromWorkflow {
                    queue,
                    token,
                    sequences: vec![sequence],
                })
            }
            5..7 => {
                let state = self.random.chance(70).then(|| random_messages::bytes(&mut self.random));
                Command::SetWorkflowState(verbs::SetWorkflowState { queue, token, state })
            }
            _ => {
                self.taken.swap_remove(index);
                Command::CloseWorkflow(verbs::CloseWorkflow { queue, token })
            }
        }
    }

    fn operate(&mut self, queue: QueueName) -> Command {
        let workflow = random_messages::workflow_id(&mut self.random);
        if self.random.chance(25) {
            let state = self.random.chance(70).then(|| random_messages::bytes(&mut self.random));
            return Command::SetState(verbs::SetState { queue, workflow, state });
        }
        let range = (Position::FIRST, Position::new(4).expect("a good position"));
        let kinds = [HoldKind::Operator, HoldKind::Gap, HoldKind::Exhausted];
        let operation = match self.random.below(9) {
            0..2 => Operation::Hold { reason: "wait".to_owned() },
            2..4 => Operation::Resume { redrive: self.random.chance(50) },
            4 => Operation::RetryNow,
            5 => Operation::SkipHead { reason: "no use".to_owned() },
            6 => Operation::VoidGap { range: self.random.chance(30).then_some(range) },
            7 => Operation::ResumeFor { kind: self.random.pick(&kinds) },
            _ => Operation::ReleaseLock,
        };
        Command::Operate(verbs::Operate { queue, workflow, operation })
    }

    fn change_much(&mut self, rows: &Rows, queue: QueueName, name: &str, order: Order) -> Command {
        let from = PurgeFrom::Start;
        match self.random.below(12) {
            0..4 => {
                let position = self.random.chance(20).then_some(Position::FIRST);
                let (queue, sequence) =
                    self.number(rows, queue, |status| matches!(status, Status::DeadLettered(_)));
                Command::Redrive(verbs::Redrive { queue, sequence, position })
            }
            4..6 => {
                let (queue, sequence) =
                    self.number(rows, queue, |status| matches!(status, Status::Scheduled { .. }));
                Command::Cancel(verbs::Cancel { queue, sequence, void: self.random.chance(50) })
            }
            6 => Command::Purge(verbs::Purge { queue, scope: PurgeScope::DeadLetters, from }),
            7 => {
                let scope = PurgeScope::Workflow(random_messages::workflow_id(&mut self.random));
                Command::Purge(verbs::Purge { queue, scope, from })
            }
            8 if self.random.chance(30) => {
                Command::Purge(verbs::Purge { queue, scope: PurgeScope::Everything, from })
            }
            9 => {
                let options = Box::new(random_messages::queue_options(order, &mut self.random));
                Command::ChangeQueue(verbs::ChangeQueue { name: queue, options })
            }
            10 => Command::DeleteQueue(verbs::DeleteQueue { name: queue }),
            _ => self.create(name, order),
        }
    }
}

fn is_asked(status: &Status) -> bool {
    matches!(status, Status::ByConsumer { .. })
}

fn held(queue: &QueueName, handed: &LockedMessage) -> Held {
    Held {
        queue: queue.clone(),
        token: handed.token,
        sequence: handed.sequence,
        delivery_count: handed.record.delivery_count,
    }
}
