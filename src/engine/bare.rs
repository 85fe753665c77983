//! The rules against rows in memory, one command at a time: what no client can bring about by itself.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::engine::rules::Rules;
use crate::engine::rules::change::Change;
use crate::engine::rules::command::Command;
use crate::engine::rules::command::Reply;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::lock::LockKind;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::Stream;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::records::Records;
use crate::engine::store::Store;
use crate::engine::store::StoreOptions;
use crate::error::ReceiveRefusal;
use crate::header::Headers;
use crate::header::Properties;
use crate::id::MessageId;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;
use crate::message::NewMessage;
use crate::message::Place;
use crate::queue::QueueOptions;
use crate::token::LockToken;

/// The rules with rows in memory, one command at a time.
struct Bare {
    rules: Rules,
    store: Store,
    now: Timestamp,
}

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

fn workflow(number: usize) -> WorkflowId {
    WorkflowId::new(format!("w{number}")).unwrap()
}

fn message(number: usize) -> NewMessage {
    NewMessage {
        workflow_id: Some(workflow(number)),
        place: Place::Arrival,
        message_id: None,
        time_to_live: None,
        schedule_at: None,
        headers: Headers::default(),
        body: bytes::Bytes::new(),
    }
}

impl Bare {
    fn new(options: QueueOptions) -> Bare {
        let store = StoreOptions::default();
        let store = Store::in_memory(store).unwrap();
        let mut bare = Bare { rules: Rules::default(), store, now: Timestamp::from_millis(1_000_000) };
        bare.apply(Command::CreateQueue { name: queue(), options: Box::new(options) });
        bare
    }

    fn apply(&mut self, command: Command) -> Reply {
        let Bare { rules, store, now } = self;
        let mut reply = None;
        let applied = store.turn(|turn| {
            reply = Some(rules.apply(*now, command, turn)?.reply);
            Ok(())
        });
        applied.unwrap();
        reply.unwrap()
    }

    /// Looks at the rows, or changes them.
    fn rows<T>(&mut self, look: impl Fn(&mut dyn Records) -> T) -> T {
        let mut seen = None;
        let looked = self.store.turn(|turn| {
            seen = Some(look(turn));
            Ok(())
        });
        looked.unwrap();
        seen.unwrap()
    }
}

#[test]
fn a_reminder_whose_queue_is_gone_is_dropped_and_nothing_else_happens() {
    let mut bare = Bare::new(QueueOptions::default());
    let stream = || Stream::Named(workflow(1));
    let number = SequenceNumber::new(1);
    for what in [
        Remind::Due(number),
        Remind::Expiry(number),
        Remind::Gap(stream()),
        Remind::Sweep(stream()),
        Remind::Forget(stream()),
        Remind::Duplicate(MessageId::new("m").unwrap()),
        Remind::Idle,
        Remind::Answer(Arc::from("k")),
    ] {
        let reminder = Reminder { due: bare.now, queue: QueueId(77), what };
        bare.rows(|rows| rows.write(Change::Reminder(reminder.clone(), true)).unwrap());
        let before = bare.rows(|rows| rows.numbers().unwrap());
        assert!(matches!(bare.apply(Command::Remind(reminder)), Reply::Done { more: false }));
        assert_eq!(bare.rows(|rows| rows.reminder_first().unwrap()), None);
        assert_eq!(bare.rows(|rows| rows.numbers().unwrap()), before);
    }
}

#[test]
fn deferred_messages_are_fetched_only_while_there_are_locks_left() {
    let mut bare = Bare::new(QueueOptions::default());
    bare.apply(Command::Send { queue: queue(), messages: vec![message(1), message(2)] });
    let token = |chance| LockToken::new(1, [chance; 12]);
    bare.apply(Command::Receive { queue: queue(), max: 2, token: token(1) });
    let sequences = [SequenceNumber::new(1), SequenceNumber::new(2)];
    for (index, sequence) in sequences.into_iter().enumerate() {
        let settlement = Settlement::Defer { until: None, properties: Properties::new() };
        let token = token(1).nth(index);
        bare.apply(Command::Settle { queue: queue(), token, sequence, delivery_count: 1, settlement });
    }
    for number in 1..limits::LOCKS_MAX {
        let key =
            WorkflowKey { queue: QueueId(9), stream: Stream::Single(SequenceNumber::new(number as u64)) };
        bare.rules.locks_mut().grant(token(2).nth(number), key, LockKind::Deliveries, Timestamp::MAX);
    }
    let mut fetch = |sequences: &[SequenceNumber], chance| {
        let (sequences, token) = (sequences.to_vec(), token(chance));
        match bare.apply(Command::ReceiveDeferred { queue: queue(), sequences, token }) {
            Reply::Receive(answer) => answer.map(|handed| handed.len()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(fetch(&sequences, 3), Err(ReceiveRefusal::TooManyLocks(limits::LOCKS_MAX - 1)));
    assert_eq!(fetch(&sequences[..1], 4), Ok(1), "one lock is left");
}

#[test]
fn the_last_use_of_a_queue_is_forgotten_with_it() {
    let idle = Some(std::time::Duration::from_secs(60));
    let mut bare = Bare::new(QueueOptions { delete_when_idle: idle, ..QueueOptions::default() });
    let token = LockToken::new(1, [1; 12]);
    bare.apply(Command::Receive { queue: queue(), max: 1, token });
    assert_eq!(bare.rules.queues_used().count(), 1);
    bare.apply(Command::DeleteQueue { name: queue() });
    assert_eq!(bare.rules.queues_used().count(), 0);
    let options = QueueOptions { delete_when_idle: idle, ..QueueOptions::default() };
    bare.apply(Command::CreateQueue { name: queue(), options: Box::new(options) });
    bare.apply(Command::Receive { queue: queue(), max: 1, token });
    while let Some(reminder) = bare.rows(|rows| rows.reminder_first().unwrap()) {
        bare.now = reminder.due;
        bare.apply(Command::Remind(reminder));
    }
    assert!(bare.rows(|rows| rows.queue_named(&queue()).unwrap()).is_none(), "it was idle for long enough");
    assert_eq!(bare.rules.queues_used().count(), 0);
}
