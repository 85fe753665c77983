//! Work on many messages, counted turn by turn: however many there are, no turn does more than a bounded amount of it.

mod forgotten;
mod full;
mod given_back;
mod passed;
mod recovered;
mod tried;

use std::cell::Cell;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::engine::rules::Rules;
use crate::engine::rules::audit::AuditEntry;
use crate::engine::rules::change::Change;
use crate::engine::rules::change::TrailEntry;
use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::Operation;
use crate::engine::rules::command::PurgeFrom;
use crate::engine::rules::command::PurgeScope;
use crate::engine::rules::command::Retry;
use crate::engine::rules::command::RunSettlement;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::cursor::Cursor;
use crate::engine::rules::cursor::CursorCount;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::due::Due;
use crate::engine::rules::due::NextDue;
use crate::engine::rules::history::HistoryEntry;
use crate::engine::rules::record::AnswerRecord;
use crate::engine::rules::record::ChainLink;
use crate::engine::rules::record::Counts;
use crate::engine::rules::record::Duplicate;
use crate::engine::rules::record::HandoverMark;
use crate::engine::rules::record::Holding;
use crate::engine::rules::record::MarkRecord;
use crate::engine::rules::record::MessageContent;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Numbers;
use crate::engine::rules::record::QueueCounters;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::MutableRecords;
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::topic_record::TopicRecord;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::engine::store::Store;
use crate::engine::store::StoreOptions;
use crate::engine::store::base::rows_read;
use crate::engine::turn::QueuedCommand;
use crate::engine::turn::TurnRules;
use crate::engine::wakeups::Wakeups;
use crate::error::Fault;
use crate::header::Properties;
use crate::id::MessageId;
use crate::id::Position;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;
use crate::message::KeptBack;
use crate::message::NewMessage;
use crate::message::Place;
use crate::queue::ExhaustedPolicy;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::token::LockToken;

/// So much work is enough for a turn: what a sweep does with each of its messages, twice over.
const ENOUGH: u64 = 128 * limits::SWEEP_MAX as u64;

/// Far more messages than one sweep takes, and more than the window over the journal keeps in memory.
const MANY: u64 = 16 * limits::SWEEP_MAX as u64;

const MINUTE: Duration = Duration::from_secs(60);

/// After so many turns what is still due is due for ever: of all that a test makes, each brings on hundreds.
const TURNS_MAX: u64 = 10_000;

/// Rows that count how often they are looked at and written.
struct Counted<'a> {
    rows: &'a mut dyn MutableRecords,
    work: Cell<u64>,
    /// So much work fills a turn.
    room: u64,
}

impl Counted<'_> {
    fn count(&self) -> &dyn Records {
        self.work.set(self.work.get() + 1);
        &*self.rows
    }
}

macro_rules! counted {
    ($(fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $answer:ty;)*) => {
        $(fn $name(&self $(, $argument: $type)*) -> $answer {
            self.count().$name($($argument),*)
        })*
    };
}

impl Records for Counted<'_> {
    fn is_full(&self) -> bool {
        self.work.get() >= self.room
    }

    fn is_half_full(&self) -> bool {
        self.work.get() >= self.room / 2
    }

    counted! {
        fn numbers(&self) -> Read<Numbers>;
        fn queue(&self, id: QueueId) -> Read<Option<Arc<QueueRecord>>>;
        fn queue_named(&self, name: &QueueName) -> Read<Option<Arc<QueueRecord>>>;
        fn queues(&self, after: Option<&QueueName>, limit: usize) -> Read<Vec<Arc<QueueRecord>>>;
        fn queue_count(&self) -> Read<usize>;
        fn counters(&self, queue: QueueId) -> Read<QueueCounters>;
        fn workflow(&self, key: &WorkflowKey) -> Read<Option<WorkflowRecord>>;
        fn workflows(&self, queue: QueueId, after: Option<&WorkflowRef>, limit: usize)
            -> Read<Vec<(WorkflowRef, WorkflowRecord)>>;
        fn state(&self, key: &WorkflowKey) -> Read<Option<Bytes>>;
        fn message(&self, key: MessageKey) -> Read<Option<Arc<MessageRecord>>>;
        fn message_from(&self, queue: QueueId, from: SequenceNumber)
            -> Read<Option<(SequenceNumber, Arc<MessageRecord>)>>;
        fn content(&self, key: MessageKey) -> Read<Option<MessageContent>>;
        fn line_from(&self, key: &WorkflowKey, rank: u64) -> Read<Option<(u64, SequenceNumber)>>;
        fn aside_from(&self, key: &WorkflowKey, rank: u64) -> Read<Option<(u64, SequenceNumber)>>;
        fn link(&self, key: &WorkflowKey, after: Option<&MessageId>) -> Read<Option<ChainLink>>;
        fn trail_from(&self, key: &WorkflowKey, rank: u64) -> Read<Option<(u64, TrailEntry)>>;
        fn root_from(&self, key: &WorkflowKey, from: SequenceNumber) -> Read<Option<SequenceNumber>>;
        fn waiting(&self, key: &WorkflowKey, id: &MessageId) -> Read<Option<SequenceNumber>>;
        fn waiting_first(&self, key: &WorkflowKey) -> Read<Option<SequenceNumber>>;
        fn mark_upto(&self, key: &WorkflowKey, rank: u64) -> Read<Option<MarkRecord>>;
        fn mark_from(&self, key: &WorkflowKey, rank: u64) -> Read<Option<MarkRecord>>;
        fn holding_after(&self, key: Option<&WorkflowKey>) -> Read<Option<(WorkflowKey, Holding)>>;
        fn ready_from(&self, queue: QueueId, ticket: u64) -> Read<Option<(u64, WorkflowRef)>>;
        fn reminder_from(&self, from: Due) -> Read<Option<Reminder>>;
        fn dead_letter_of(&self, key: &WorkflowKey, from: (u64, SequenceNumber))
            -> Read<Option<(u64, SequenceNumber)>>;
        fn dead_letters(&self, queue: QueueId, from: Bound<(&str, SequenceNumber)>, limit: usize)
            -> Read<Vec<(String, SequenceNumber)>>;
        fn duplicate(&self, queue: QueueId, id: &MessageId) -> Read<Option<Duplicate>>;
        fn answer(&self, queue: QueueId, key: &Arc<str>) -> Read<Option<Arc<AnswerRecord>>>;
        fn answer_count(&self, queue: QueueId) -> Read<u64>;
        fn topic(&self, name: &QueueName) -> Read<Option<Arc<TopicRecord>>>;
        fn handover_mark(&self, partition: u16) -> Read<Option<Arc<HandoverMark>>>;
        fn topics(&self, after: Option<&QueueName>, limit: usize) -> Read<Vec<Arc<TopicRecord>>>;
        fn audit(&self, number: u64) -> Read<Option<Arc<AuditEntry>>>;
        fn audit_last(&self) -> Read<Option<Arc<AuditEntry>>>;
        fn audit_after(&self, number: u64, limit: usize) -> Read<Vec<Arc<AuditEntry>>>;
        fn history(&self, queue: QueueId, number: u64) -> Read<Option<Arc<HistoryEntry>>>;
        fn history_of_message(&self, queue: QueueId, sequence: SequenceNumber) -> Read<Option<u64>>;
        fn history_of_workflow(&self, key: &WorkflowKey, upto: u64) -> Read<Option<u64>>;
        fn cursor(&self, key: &WorkflowKey) -> Read<Option<Cursor>>;
        fn cursor_oldest(&self, queue: QueueId) -> Read<Option<(Timestamp, WorkflowKey)>>;
        fn cursor_count(&self, queue: QueueId) -> Read<CursorCount>;
    }
}

impl MutableRecords for Counted<'_> {
    fn begin_trial(&mut self) {
        self.rows.begin_trial();
    }

    fn roll_back(&mut self) {
        self.rows.roll_back();
    }

    fn write(&mut self, change: Change) -> Result<(), Fault> {
        self.work.set(self.work.get() + 1);
        self.rows.write(change)
    }
}

/// The rules and a store, turn by turn.
struct Turns {
    rules: Rules,
    wakeups: Wakeups,
    store: Store,
    now: Timestamp,
    next_due: NextDue,
    /// How much work each turn has done since it was last asked for.
    work: Vec<u64>,
    /// How much work fills a turn.
    room: u64,
}

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

fn workflow() -> WorkflowId {
    WorkflowId::new("w").unwrap()
}

fn token(chance: u8) -> LockToken {
    LockToken::new(1, [chance; 12])
}

/// The message with this number in the workflow's order.
fn numbered(order: Order, number: u64) -> NewMessage {
    let id = |number: u64| MessageId::new(format!("m{number}")).unwrap();
    let (place, message_id) = match order {
        Order::After => (Place::After((number > 1).then(|| id(number - 1))), Some(id(number))),
        _ => (Place::Position(Position::new(number).unwrap()), None),
    };
    NewMessage {
        workflow_id: Some(workflow()),
        place,
        message_id,
        time_to_live: None,
        kept_back: None,
        headers: Default::default(),
        body: Bytes::new(),
    }
}

fn mortal(order: Order, number: u64) -> NewMessage {
    NewMessage { time_to_live: Some(MINUTE), ..numbered(order, number) }
}

impl Turns {
    /// A queue with many messages of one workflow, most of which are flushed into their tables.
    fn with_many(options: QueueOptions, lives: Option<Duration>) -> Turns {
        Turns::with_first(options, lives, None)
    }

    /// The same; the first of them may be scheduled.
    fn with_first(options: QueueOptions, lives: Option<Duration>, first_at: Option<Timestamp>) -> Turns {
        let order = options.order;
        let small = StoreOptions { generation_bytes: 128 * 1024, generations: 2, ..StoreOptions::default() };
        Turns::filled(small, options, |number| NewMessage {
            time_to_live: lives,
            kept_back: first_at.filter(|_| number == 1).map(KeptBack::Until),
            ..numbered(order, number)
        })
    }

    /// A store with many messages of one workflow, all of them in their tables; whatever is deleted of them stays in the window.
    fn flushed(place: impl Fn(u64) -> u64) -> Turns {
        let (options, order) = (QueueOptions::by_position(), QueueOptions::by_position().order);
        let mut turns =
            Turns::filled(StoreOptions::default(), options, |number| numbered(order, place(number)));
        turns.flush();
        turns
    }

    /// Takes everything to its tables.
    fn flush(&mut self) {
        // So few are not flushed by themselves: the first turn ends their generation.
        self.store.flush_turn().unwrap();
        while self.store.has_idle_work() {
            self.store.flush_turn().unwrap();
        }
    }

    /// A store with many messages in one queue.
    fn filled(of: StoreOptions, options: QueueOptions, message: impl Fn(u64) -> NewMessage) -> Turns {
        let mut turns = Turns::with_queue(of, options);
        for first in (1..=MANY).step_by(limits::SWEEP_MAX) {
            let messages = (first..first + limits::SWEEP_MAX as u64).map(&message).collect();
            turns.ask(Command::Send(verbs::Send { queue: queue(), messages }));
        }
        turns.work.clear();
        turns
    }

    /// A store with a queue.
    fn with_queue(of: StoreOptions, options: QueueOptions) -> Turns {
        let store = Store::in_memory(of).unwrap();
        let now = Timestamp::from_millis(1_000_000);
        let (rules, wakeups) = (Rules::default(), Wakeups::default());
        let (next_due, work, room) = (NextDue::default(), Vec::new(), u64::MAX);
        let mut turns = Turns { rules, wakeups, store, now, next_due, work, room };
        turns.ask(Command::CreateQueue(verbs::CreateQueue { name: queue(), options: Box::new(options) }));
        turns
    }

    /// One turn, with what is due and what is asked.
    fn turn(&mut self, asked: impl IntoIterator<Item = Command>) {
        let Turns { rules, wakeups, store, now, room, .. } = self;
        let before = rows_read();
        let (next_due, work) = store
            .turn(|turn| {
                let mut rows = Counted { rows: turn, work: Cell::new(0), room: *room };
                let mut work = TurnRules::new(
                    ClockInstants::same(*now),
                    Duration::ZERO,
                    rules,
                    wakeups,
                    &mut rows,
                    (None, None),
                );
                work.apply_due()?;
                work.apply_all(
                    asked.into_iter().map(|command| QueuedCommand::Unattended(Box::new(command))).collect(),
                )?;
                let next_due = work.finish()?.next_due;
                Ok((next_due, rows.work.get()))
            })
            .unwrap();
        self.next_due = next_due;
        self.work.push(work + rows_read() - before);
    }

    fn ask(&mut self, command: Command) {
        self.turn(Some(command));
    }

    fn send(&mut self, message: NewMessage) {
        self.ask(Command::Send(verbs::Send { queue: queue(), messages: vec![message] }));
    }

    fn pass_time(&mut self, span: Duration) {
        self.now = self.now + span;
        self.turn(None);
        self.finish();
    }

    /// Turns until nothing is due any more; how many.
    fn finish(&mut self) -> u64 {
        let mut turns = 0;
        while self.next_due.is_past(ClockInstants::same(self.now)) {
            assert!(turns < TURNS_MAX, "something is due again and again");
            self.turn(None);
            turns += 1;
        }
        turns
    }

    /// Purges step by step, as the client does; how many were removed.
    fn purge(&mut self, scope: &PurgeScope) -> u64 {
        let (mut from, mut count) = (Some(PurgeFrom::Start), 0);
        while let Some(next) = from {
            let command = Command::Purge(verbs::Purge { queue: queue(), scope: scope.clone(), from: next });
            let Turns { rules, store, now, room, .. } = self;
            let before = rows_read();
            let (reply, work) = store
                .turn(|turn| {
                    let mut rows = Counted { rows: turn, work: Cell::new(0), room: *room };
                    let reply = rules.apply(ClockInstants::same(*now), command, &mut rows)?.reply;
                    Ok((reply, rows.work.get()))
                })
                .unwrap();
            self.work.push(work + rows_read() - before);
            let Reply::Purge(Ok(purged)) = reply else { panic!("{reply:?}") };
            count += purged.count;
            from = purged.next;
        }
        count
    }

    fn operate(&mut self, operation: Operation) {
        self.ask(Command::Operate(verbs::Operate { queue: queue(), workflow: workflow(), operation }));
    }

    fn counts(&mut self) -> Counts {
        let name = queue();
        let counters = self.store.turn(|turn| {
            let queue = turn.queue_named(&name)?.expect("it was created");
            turn.counters(queue.id)
        });
        counters.unwrap().counts
    }

    #[track_caller]
    fn check(&self, what: &str) {
        let most = self.work.iter().max().expect("turns were counted");
        assert!(*most <= ENOUGH, "{what}: {most} rows were looked at or changed in one turn");
    }

    /// The last quarter of the turns has cost no more than the first.
    #[track_caller]
    fn check_even(&self, what: &str) {
        let steps = self.work.len();
        let of = |steps: &[u64]| steps.iter().sum::<u64>();
        let (first, last) = (of(&self.work[..steps / 4]), of(&self.work[steps - steps / 4..]));
        assert!(last * 5 <= first * 6, "{what}: {:?} rows a turn", self.work);
    }
}

#[test]
fn a_purge_of_any_size_takes_turns_of_bounded_work() {
    for scope in [PurgeScope::Everything, PurgeScope::Workflow(workflow())] {
        let mut turns = Turns::with_many(QueueOptions::by_position(), None);
        assert_eq!(turns.purge(&scope), MANY);
        turns.check("a purge");
    }
}

#[test]
fn a_long_purge_costs_the_same_from_its_first_step_to_its_last() {
    for scope in [PurgeScope::Everything, PurgeScope::Workflow(workflow())] {
        // The first one is missing.
        let mut turns = Turns::flushed(|number| number + 1);
        assert_eq!(turns.purge(&scope), MANY);
        turns.check_even(&format!("{scope:?}"));
    }
}

#[test]
fn a_purge_behind_a_locked_message_takes_turns_of_bounded_work() {
    for scope in [PurgeScope::Everything, PurgeScope::Workflow(workflow())] {
        let mut turns = Turns::with_many(QueueOptions::by_position(), None);
        turns.ask(Command::Receive(verbs::Receive { queue: queue(), max: 1, token: token(1) }));
        assert_eq!(turns.purge(&scope), MANY - 1);
        turns.check("a purge behind a locked message");
        let (queue, token, sequence) = (queue(), token(1), SequenceNumber::new(1));
        let settlement = Settlement::Complete(Default::default());
        turns.ask(Command::Settle(verbs::Settle { queue, token, sequence, delivery_count: 1, settlement }));
        turns.finish();
        turns.check("the settlement of the locked message");
        assert_eq!(turns.counts().stored(), 0);
    }
}

#[test]
fn a_purge_of_many_dead_letters_takes_turns_of_bounded_work() {
    let mut turns = Turns::with_many(QueueOptions::by_position(), Some(Duration::from_secs(60)));
    turns.now = turns.now + Duration::from_secs(60);
    turns.turn(None);
    turns.finish();
    turns.check("the end of many times to live at one instant");
    assert_eq!(turns.counts().dead_lettered, MANY);
    turns.work.clear();
    assert_eq!(turns.purge(&PurgeScope::DeadLetters), MANY);
    turns.check("a purge of dead letters");
}

#[test]
fn a_long_backlog_of_one_workflow_costs_the_same_from_its_first_message_to_its_last() {
    let after = QueueOptions { order: Order::After, ..QueueOptions::default() };
    for (options, run) in [(QueueOptions::by_position(), 1), (after, 16)] {
        let order = options.order;
        let mut turns = Turns::with_many(options, None);
        let (mut tenths, mut next) = (Vec::new(), 0);
        while next < MANY {
            turns.work.clear();
            let (from, end) = (next, (next + MANY.div_ceil(10)).min(MANY));
            while next < end {
                let (queue, token) = (queue(), token(u8::try_from(next % 251).unwrap()));
                turns.ask(Command::ReceiveRun(verbs::ReceiveRun { queue: queue.clone(), max: run, token }));
                let first = Some(SequenceNumber::new(next + 1));
                let settlement = RunSettlement {
                    completed: run,
                    completion: CompletionCommand::default(),
                    next: None,
                    keep_rest: false,
                    first,
                };
                turns.ask(Command::SettleRun(verbs::SettleRun { queue, token, settlement }));
                next += run as u64;
            }
            tenths.push(turns.work.iter().sum::<u64>() / (next - from));
        }
        assert_eq!(turns.counts().completed, MANY, "{order:?}");
        let (first, last) = (tenths[0], tenths[9]);
        assert!(last * 5 <= first * 6, "{order:?} by {run}: {tenths:?} rows a message");
    }
}
