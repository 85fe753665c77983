//! One of everything, for the tests of the codec and of determinism.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::engine::rules::audit::AuditEntry;
use crate::engine::rules::audit::AuditVerb;
use crate::engine::rules::change::Change;
use crate::engine::rules::change::DeadLetterKey;
use crate::engine::rules::change::TrailEntry;
use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::Operation;
use crate::engine::rules::command::PurgeFrom;
use crate::engine::rules::command::PurgeScope;
use crate::engine::rules::command::Retry;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::command::StateChange;
use crate::engine::rules::command_samples;
use crate::engine::rules::cursor::Cursor;
use crate::engine::rules::cursor::CursorCount;
use crate::engine::rules::due::Due;
use crate::engine::rules::history::HistoryEnding;
use crate::engine::rules::history::HistoryEntry;
use crate::engine::rules::history::HistorySpan;
use crate::engine::rules::holds::Hold;
use crate::engine::rules::holds::HoldCause;
use crate::engine::rules::output::Output;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::AnswerRecord;
use crate::engine::rules::record::Attempt;
use crate::engine::rules::record::ChainLink;
use crate::engine::rules::record::DeadLetter;
use crate::engine::rules::record::DeferralRecord;
use crate::engine::rules::record::Duplicate;
use crate::engine::rules::record::HandoverMark;
use crate::engine::rules::record::Holding;
use crate::engine::rules::record::KeptHandover;
use crate::engine::rules::record::MarkRecord;
use crate::engine::rules::record::MessageContent;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Numbers;
use crate::engine::rules::record::QueueCounters;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::RareOfMessage;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::SettlementKind;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::Suspicion;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::topic_samples;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::rules::workflow_record::GapRecord;
use crate::engine::rules::workflow_record::Rare;
use crate::engine::rules::workflow_record::RareFields;
use crate::engine::rules::workflow_record::Shortening;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::header::Headers;
use crate::header::PropertyValue;
use crate::id::MessageId;
use crate::id::Position;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::SubscriptionName;
use crate::id::WorkflowId;
use crate::message::KeptBack;
use crate::message::NewMessage;
use crate::message::Place;
use crate::queue::QueueOptions;
use crate::token::LockToken;

pub(crate) fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

pub(crate) fn workflow() -> WorkflowId {
    WorkflowId::new("w").unwrap()
}

pub(crate) fn id() -> MessageId {
    MessageId::new("m").unwrap()
}

pub(crate) fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(crate) fn number(value: u64) -> SequenceNumber {
    SequenceNumber::new(value)
}

pub(crate) fn token(chance: u8) -> LockToken {
    LockToken::new(1, [chance; 12])
}

pub(crate) fn headers() -> Headers {
    let values = [
        ("b", PropertyValue::Boolean(true)),
        ("f", PropertyValue::Float(0.5)),
        ("i", PropertyValue::Integer(-3)),
        ("t", PropertyValue::Text("text".to_owned())),
        ("x", PropertyValue::Binary(Bytes::from_static(b"\x00\xff"))),
    ];
    Headers {
        subject: Some("s".to_owned()),
        content_type: Some("c".to_owned()),
        correlation_id: Some("i".to_owned()),
        reply_to: Some("r".to_owned()),
        properties: values.map(|(name, value)| (name.to_owned(), value)).into(),
    }
}

pub(crate) fn message(place: Place) -> NewMessage {
    NewMessage {
        workflow_id: Some(workflow()),
        place,
        message_id: Some(id()),
        time_to_live: Some(Duration::from_millis(70_000)),
        kept_back: Some(KeptBack::Until(at(5))),
        headers: headers().into(),
        body: Bytes::from_static(b"body"),
    }
}

pub(crate) fn placed(position: u64) -> NewMessage {
    let place = Place::Position(Position::new(position).unwrap());
    NewMessage { message_id: None, ..message(place) }
}

/// A short history that touches much of the rules; the last command matters to the state.
pub(crate) fn story() -> Vec<Command> {
    let options = QueueOptions { delivery_count_max: 2, ..QueueOptions::by_position() };
    let receive = |chance| Command::Receive(verbs::Receive { queue: queue(), max: 10, token: token(chance) });
    let settle = |chance, sequence, settlement| {
        Command::Settle(verbs::Settle {
            queue: queue(),
            token: token(chance),
            sequence: number(sequence),
            delivery_count: 1,
            settlement,
        })
    };
    let abandon = Settlement::Abandon {
        retry: Retry::Backoff(12_345),
        reason: "busy".to_owned(),
        properties: headers().properties,
        output: output(),
    };
    let completion = CompletionCommand {
        state: StateChange::Set(Bytes::from_static(b"state")),
        sends: vec![(queue(), vec![placed(9)])],
    };
    vec![
        Command::CreateQueue(verbs::CreateQueue { name: queue(), options: Box::new(options) }),
        Command::Send(verbs::Send {
            queue: queue(),
            messages: vec![placed(3), placed(1), placed(2), placed(7)],
        }),
        receive(1),
        settle(1, 2, Settlement::Complete(completion)),
        receive(2),
        settle(2, 3, abandon),
        receive(3),
        Command::Operate(verbs::Operate {
            queue: queue(),
            workflow: workflow(),
            operation: Operation::SkipHead { reason: "no".to_owned() },
        }),
        receive(4),
        Command::Purge(verbs::Purge {
            queue: queue(),
            scope: PurgeScope::DeadLetters,
            from: PurgeFrom::Start,
        }),
    ]
}

/// Every command and every change, by name, as bytes.
pub(crate) fn encoded() -> Vec<(String, Vec<u8>)> {
    let commands = command_samples::commands().into_iter().map(|command| (named(&command), encode(&command)));
    let changes = changes().into_iter().map(|change| (named(&change), encode(&change)));
    commands.chain(changes).collect()
}

fn encode<T: serde::Serialize>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).unwrap()
}

/// The variant's name and its settlement's or operation's, for the golden file.
fn named<T: std::fmt::Debug>(value: &T) -> String {
    let text = format!("{value:?}");
    text.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default().to_owned()
}

fn due(millis: u64) -> Due {
    Due::engine(at(millis))
}

pub(crate) fn reminder(what: Remind) -> Reminder {
    Reminder { due: due(9), queue: QueueId(1), what }
}

fn changes() -> Vec<Change> {
    let queue = QueueId(1);
    let stream = WorkflowRef::Named(workflow());
    let key = WorkflowKey { queue, stream: stream.clone() };
    let message_key = MessageKey { queue, sequence: number(300) };
    let numbers = Numbers { next_sequence: 1, next_ticket: 2, next_queue: 3 };
    let content = MessageContent {
        workflow_id: Some(workflow()),
        headers: headers().into(),
        body: Bytes::from_static(b"b"),
    };
    let link = ChainLink { sequence: Some(number(1)), message_id: Some(id()), rank: Some(2), settled: None };
    let dead_letter =
        DeadLetterKey { workflow: key.clone(), rank: 3, sequence: number(4), reason: "r".to_owned() };
    let history = HistorySpan { first: 300, next: 302, check: Some(at(9)) };
    let mut changes = vec![
        Change::Numbers(numbers),
        Change::Queue(Box::new(queue_record(queue))),
        Change::QueueGone(queue),
        Change::Counters(
            queue,
            Box::new(QueueCounters { used_at: at(8), history, ..QueueCounters::default() }),
        ),
        Change::Workflow(key.clone(), Some(Box::new(workflow_record()))),
        Change::State(key.clone(), Some(Bytes::from_static(b"state"))),
        Change::Content(message_key, Some(content)),
        Change::Line(key.clone(), 300, Some(number(5))),
        Change::Aside(key.clone(), 300, None),
        Change::Link(key.clone(), Some(id()), Some(link)),
        Change::Trail(key.clone(), 6, Some(TrailEntry { after: Some(id()) })),
        Change::Root(key.clone(), number(7), true),
        Change::Waiting(key.clone(), id(), Some(number(7))),
        Change::Mark(key.clone(), 8, Some(MarkRecord { from: 8, to: 9, how: SettlementKind::Skipped })),
        Change::Holding(
            key.clone(),
            Some(Holding { out: [number(1), number(2)].into_iter().collect(), is_run: true }),
        ),
        Change::Ready(queue, 9, Some(stream)),
        Change::DeadLetter(Box::new(dead_letter), true),
        Change::Duplicate(queue, id(), Some(Duplicate { sequence: number(1), until: at(9) })),
        Change::Answer(queue, Arc::from("k"), Some(Arc::new(answered()))),
        Change::AnswerCount(queue, Some(300)),
        Change::Audit(300, Some(Arc::new(audit_entry()))),
        Change::History(queue, 300, Some(Arc::new(history_entry()))),
        Change::HistoryOfMessage(queue, number(300), Some(301)),
        Change::HistoryOfWorkflow(key.clone(), 301, true),
        Change::Cursor(key, at(7), Some(Cursor { next: 300, done: 299, since: at(7) })),
        Change::CursorCount(
            queue,
            Some(CursorCount { kept: 300, cut: 2, check: Some(at(9)), links_cut: 301 }),
        ),
    ];
    let record = |status| Change::Message(message_key, Some(Arc::new(message_record(status))));
    changes.extend(statuses().into_iter().map(record));
    changes.extend(reminds().into_iter().map(|what| Change::Reminder(reminder(what), true)));
    changes.push(topic_samples::change());
    changes.push(Change::Handovers(3, Some(Arc::new(handover_mark()))));
    changes
}

fn handover_mark() -> HandoverMark {
    let kept = |sequence, digest| KeptHandover { number: number(sequence), digest };
    HandoverMark { epoch: 300, kept: vec![kept(1, 300), kept(301, 2)] }
}

fn audit_entry() -> AuditEntry {
    AuditEntry {
        number: 300,
        at: at(1),
        actor: "ada".to_owned(),
        verb: AuditVerb::ReleaseLock,
        queue: queue(),
        workflow_id: Some(workflow()),
        sequence_number: Some(number(2)),
        positions: Some((3, 400)),
        reason: Some("r".to_owned()),
        refusal: Some("no".to_owned()),
        count: 5,
    }
}

pub(crate) fn history_entry() -> HistoryEntry {
    HistoryEntry {
        number: 300,
        at: at(1),
        ending: HistoryEnding::Redriven(number(301)),
        sequence_number: Some(number(2)),
        workflow_id: Some(workflow()),
        positions: Some((3, 3)),
        message_id: Some(id()),
        accepted_at: Some(at(4)),
        delivery_count: 5,
        reason: Some("r".to_owned()),
        since: at(6),
    }
}

fn answered() -> AnswerRecord {
    let receipts = vec![
        Receipt::Accepted(number(300)),
        Receipt::Duplicate(number(2)),
        Receipt::AlreadySettled,
        Receipt::DeadLettered(number(3)),
    ];
    let shares = vec![(SubscriptionName::new("s").unwrap(), 1), (SubscriptionName::new("t").unwrap(), 3)];
    AnswerRecord { digest: 300, receipts, until: at(9), shares }
}

fn queue_record(id: QueueId) -> QueueRecord {
    let options = QueueOptions::by_position();
    QueueRecord { id, name: queue(), options, created_at: at(1), idle_check: Some(at(2)), paused: true }
}

fn workflow_record() -> WorkflowRecord {
    let hold = Hold { cause: HoldCause::Exhausted(number(1)), since: at(1), reason: "r".to_owned() };
    WorkflowRecord {
        cursor: 300,
        through: 301,
        done: 2,
        line: 3,
        early: 4,
        early_bytes: 5,
        aside: 6,
        dead: 7,
        ticket: Some(8),
        idle_since: Some(at(5)),
        forget: Some(at(6)),
        rare: Rare::from(RareFields {
            tail: Some(id()),
            has_state: true,
            state_set_at: Some(at(300)),
            holds: [hold].into_iter().collect(),
            gap: Some(GapRecord { at: 1, since: at(2), due: Some(at(3)) }),
            sweep: Some(at(4)),
            extending: true,
            shortening: Some(Shortening { rank: 7, after: Some(id()) }),
        }),
    }
}

fn statuses() -> Vec<Status> {
    let dead_letter =
        DeadLetter { deliveries: 2, deferred: true, ..DeadLetter::new("r", "d".to_owned(), at(9)) };
    vec![
        Status::Ready,
        Status::Scheduled { due: Due::wall(at(9)) },
        Status::Failed { due: Some(due(9)) },
        Status::ByConsumer { due: None, aside: true },
        Status::Locked { fetched: Some(DeferralRecord { due: Some(due(9)), aside: true }) },
        Status::DeadLettered(Box::new(dead_letter)),
    ]
}

pub(crate) fn output() -> Output {
    Output { text: "o".to_owned(), cut_bytes: 300 }
}

pub(crate) fn attempt() -> Attempt {
    Attempt {
        delivery_count: 1,
        at: at(2),
        lasted: Duration::from_millis(1_500),
        reason: "r".to_owned(),
        output: output(),
    }
}

pub(crate) fn message_record(status: Status) -> MessageRecord {
    let rare = RareOfMessage {
        after: Some(id()),
        expires_at: Some(due(9)),
        time_to_live: Some(Duration::from_millis(8)),
        attempts: vec![attempt()],
        suspicion: Suspicion::Counted,
        has_extra: true,
    };
    MessageRecord {
        stream: WorkflowRef::Single(number(300)),
        rank: Some(1),
        message_id: Some(id()),
        status,
        accepted_at: at(1),
        bytes: 300,
        delivery_count: 2,
        handed_out_at: at(2),
        rare: rare.into(),
    }
}

fn reminds() -> Vec<Remind> {
    let stream = || WorkflowRef::Named(workflow());
    vec![
        Remind::Due(number(1)),
        Remind::Expiry(number(1)),
        Remind::Gap(stream()),
        Remind::Sweep(stream()),
        Remind::Forget(stream()),
        Remind::Duplicate(id()),
        Remind::Idle,
        Remind::Answer(Arc::from("k")),
        Remind::History,
        Remind::Cursors,
    ]
}
