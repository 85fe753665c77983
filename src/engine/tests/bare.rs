//! The rules against rows in memory, one command at a time: what no client can bring about by itself.

use std::sync::Arc;
use std::time::Duration;

use crate::actor::Actor;
use crate::clock::Timestamp;
use crate::engine::rules::Rules;
use crate::engine::rules::audit::AuditEntry;
use crate::engine::rules::change::Change;
use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::Operation;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::due::DeferralEnd;
use crate::engine::rules::due::Due;
use crate::engine::rules::lock::LockKind;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::Suspicion;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::MutableRecords;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::store::Store;
use crate::engine::store::StoreOptions;
use crate::engine::upcoming::first_reminders;
use crate::error::ReceiveRefusal;
use crate::error::SendRefusal;
use crate::header::Properties;
use crate::id::IdempotencyKey;
use crate::id::MessageId;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;
use crate::message::KeptBack;
use crate::message::NewMessage;
use crate::message::Place;
use crate::queue::ExhaustedPolicy;
use crate::queue::ExpiryPolicy;
use crate::queue::GapAction;
use crate::queue::GapPolicy;
use crate::queue::Order;
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
        kept_back: None,
        headers: Default::default(),
        body: bytes::Bytes::new(),
    }
}

impl Bare {
    fn new(options: QueueOptions) -> Bare {
        let store = StoreOptions::default();
        let store = Store::in_memory(store).unwrap();
        let mut bare = Bare { rules: Rules::default(), store, now: Timestamp::from_millis(1_000_000) };
        bare.apply(Command::CreateQueue(verbs::CreateQueue { name: queue(), options: Box::new(options) }));
        bare
    }

    fn apply(&mut self, command: Command) -> Reply {
        self.apply_at(ClockInstants::same(self.now), command)
    }

    fn apply_at(&mut self, now: ClockInstants, command: Command) -> Reply {
        let Bare { rules, store, .. } = self;
        let mut reply = None;
        let applied = store.turn(|turn| {
            reply = Some(rules.apply(now, command, turn)?.reply);
            Ok(())
        });
        applied.unwrap();
        reply.unwrap()
    }

    /// Looks at the rows, or changes them.
    fn rows<T>(&mut self, look: impl Fn(&mut dyn MutableRecords) -> T) -> T {
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
    let stream = || WorkflowRef::Named(workflow(1));
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
        let reminder = Reminder { due: bare.now.into(), queue: QueueId(77), what };
        bare.rows(|rows| rows.write(Change::Reminder(reminder.clone(), true)).unwrap());
        let before = bare.rows(|rows| rows.numbers().unwrap());
        assert!(matches!(
            bare.apply(Command::Remind(verbs::Remind { reminder })),
            Reply::Done { more: false }
        ));
        assert_eq!(bare.rows(|rows| first_reminders(rows).unwrap()[0].clone()), None);
        assert_eq!(bare.rows(|rows| rows.numbers().unwrap()), before);
    }
}

#[test]
fn deferred_messages_are_fetched_only_while_there_are_locks_left() {
    let mut bare = Bare::new(QueueOptions::default());
    bare.apply(Command::Send(verbs::Send { queue: queue(), messages: vec![message(1), message(2)] }));
    let token = |chance| LockToken::new(1, [chance; 12]);
    bare.apply(Command::Receive(verbs::Receive { queue: queue(), max: 2, token: token(1) }));
    let sequences = [SequenceNumber::new(1), SequenceNumber::new(2)];
    for (index, sequence) in sequences.into_iter().enumerate() {
        let settlement = Settlement::Defer { until: DeferralEnd::ByConsumer, properties: Properties::new() };
        let token = token(1).nth(index);
        bare.apply(Command::Settle(verbs::Settle {
            queue: queue(),
            token,
            sequence,
            delivery_count: 1,
            settlement,
        }));
    }
    for number in 1..limits::LOCKS_MAX {
        let key = WorkflowKey {
            queue: QueueId(9),
            stream: WorkflowRef::Single(SequenceNumber::new(number as u64)),
        };
        bare.rules.locks_mut().grant(token(2).nth(number), key, LockKind::Deliveries, Timestamp::MAX);
    }
    let mut fetch = |sequences: &[SequenceNumber], chance| {
        let (sequences, token) = (sequences.to_vec(), token(chance));
        match bare.apply(Command::ReceiveDeferred(verbs::ReceiveDeferred {
            queue: queue(),
            sequences,
            token,
        })) {
            Reply::Receive(answer) => answer.map(|handed| handed.len()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(fetch(&sequences, 3), Err(ReceiveRefusal::TooManyLocks(limits::LOCKS_MAX - 1)));
    assert_eq!(fetch(&sequences[..1], 4), Ok(1), "one lock is left");
}

#[test]
fn a_suspect_behind_what_has_just_expired_waits_for_what_its_holder_has_out() {
    let mut bare = Bare::new(QueueOptions { lock: Duration::from_secs(3_600), ..QueueOptions::default() });
    let second = NewMessage { time_to_live: Some(Duration::from_secs(1)), ..message(1) };
    let messages = vec![message(1), second, message(1)];
    let sent = match bare.apply(Command::Send(verbs::Send { queue: queue(), messages })) {
        Reply::Send(sent) => sent.unwrap(),
        other => panic!("{other:?}"),
    };
    let numbers: Vec<SequenceNumber> = sent.iter().filter_map(Receipt::sequence_number).collect();
    let of_queue = bare.rows(|rows| rows.queue_named(&queue()).unwrap().unwrap().id);
    let last = MessageKey { queue: of_queue, sequence: numbers[2] };
    bare.rows(|rows| {
        let mut suspect = MessageRecord::clone(&rows.message(last).unwrap().unwrap());
        suspect.rare.suspicion = Suspicion::Counted;
        rows.write(Change::Message(last, Some(Arc::new(suspect)))).unwrap();
    });
    let token = LockToken::new(1, [1; 12]);
    let accept = verbs::AcceptWorkflow { queue: queue(), workflow: Some(workflow(1)), token };
    bare.apply(Command::AcceptWorkflow(accept));
    let receive = |bare: &mut Bare| {
        let receive = verbs::ReceiveFromWorkflow { queue: queue(), token, max: 1 };
        match bare.apply(Command::ReceiveFromWorkflow(receive)) {
            Reply::Receive(handed) => {
                handed.unwrap().iter().map(|handed| handed.sequence).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(receive(&mut bare), numbers[..1]);
    // Nobody has reminded of its end yet, as when too much is due at once.
    bare.now = bare.now + Duration::from_secs(1);
    assert_eq!(receive(&mut bare), []);
    let first = DeliveryRef { token, sequence: numbers[0], delivery_count: 1 };
    bare.apply(Command::CompleteAll(verbs::CompleteAll { queue: queue(), deliveries: vec![first] }));
    assert_eq!(receive(&mut bare), numbers[2..]);
}

#[test]
fn the_last_use_of_a_queue_is_forgotten_with_it() {
    let idle = Some(Duration::from_secs(60));
    let mut bare = Bare::new(QueueOptions { delete_when_idle: idle, ..QueueOptions::default() });
    let token = LockToken::new(1, [1; 12]);
    bare.apply(Command::Receive(verbs::Receive { queue: queue(), max: 1, token }));
    assert_eq!(bare.rules.queues_used().count(), 1);
    bare.apply(Command::DeleteQueue(verbs::DeleteQueue { name: queue() }));
    assert_eq!(bare.rules.queues_used().count(), 0);
    let options = QueueOptions { delete_when_idle: idle, ..QueueOptions::default() };
    bare.apply(Command::CreateQueue(verbs::CreateQueue { name: queue(), options: Box::new(options) }));
    bare.apply(Command::Receive(verbs::Receive { queue: queue(), max: 1, token }));
    while let Some(reminder) = bare.rows(|rows| first_reminders(rows).unwrap()[0].clone()) {
        bare.now = reminder.due.at();
        bare.apply(Command::Remind(verbs::Remind { reminder }));
    }
    assert!(bare.rows(|rows| rows.queue_named(&queue()).unwrap()).is_none(), "it was idle for long enough");
    assert_eq!(bare.rules.queues_used().count(), 0);
}

#[test]
fn the_oldest_entry_of_the_audit_goes_when_there_are_too_many() {
    let mut bare = Bare::new(QueueOptions::default());
    let actor = Arc::new(Actor::new("ada").unwrap());
    let hold = || {
        let operation = Operation::Hold { reason: "said so".to_owned() };
        let command = Command::Operate(verbs::Operate { queue: queue(), workflow: workflow(1), operation });
        Command::OnRecord(Box::new(verbs::OnRecord { actor: actor.clone(), begun: None, command }))
    };
    bare.apply(hold());
    let first = bare.rows(|rows| rows.audit_last().unwrap()).expect("it is on record");
    let at = |number| Some(Arc::new(AuditEntry { number, ..AuditEntry::clone(&first) }));
    let newest = limits::AUDIT_KEPT + 1;
    bare.rows(|rows| {
        rows.write(Change::Audit(1, None)).unwrap();
        [2, 3, newest].iter().for_each(|number| rows.write(Change::Audit(*number, at(*number))).unwrap());
    });
    bare.apply(hold());
    let left = bare.rows(|rows| rows.audit_after(0, limits::PAGE_MAX).unwrap());
    let left: Vec<u64> = left.iter().map(|entry| entry.number).collect();
    assert_eq!(left, [3, newest, newest + 1]);
}

#[test]
fn a_send_under_a_new_key_is_refused_when_too_many_answers_are_kept_and_the_known_ones_are_given() {
    let mut bare = Bare::new(QueueOptions::default());
    let key = |text| IdempotencyKey::new(text, 1).unwrap();
    let send = |text| {
        Command::SendOnce(verbs::SendOnce { queue: queue(), key: key(text), messages: vec![message(1)] })
    };
    let sent = |reply| match reply {
        Reply::Send(answer) => answer,
        other => panic!("{other:?}"),
    };
    let first = sent(bare.apply(send("known"))).unwrap();
    let id = bare.rows(|rows| rows.queue_named(&queue()).unwrap()).expect("it was created").id;
    let kept = limits::IDEMPOTENCY_KEYS_MAX;
    bare.rows(|rows| rows.write(Change::AnswerCount(id, Some(kept))).unwrap());
    assert_eq!(sent(bare.apply(send("new"))), Err(SendRefusal::TooManyKeys { kept }));
    assert_eq!(sent(bare.apply(send("known"))), Ok(first));
    bare.now = bare.now + limits::IDEMPOTENCY_WINDOW;
    let reminder =
        bare.rows(|rows| first_reminders(rows).unwrap()[0].clone()).expect("the answer will be forgotten");
    bare.apply(Command::Remind(verbs::Remind { reminder }));
    sent(bare.apply(send("new"))).unwrap();
}

/// A message of an after-ordered workflow, named by its number.
fn chained(number: u64) -> NewMessage {
    let id = |number: u64| MessageId::new(format!("m{number}")).unwrap();
    let place = Place::After((number > 1).then(|| id(number - 1)));
    NewMessage { place, message_id: Some(id(number)), ..message(1) }
}

#[test]
fn what_an_after_ordered_workflow_forgets_because_there_is_too_much_is_counted_and_then_a_stray() {
    let mut bare = Bare::new(QueueOptions { order: Order::After, ..QueueOptions::default() });
    let key = WorkflowKey { queue: QueueId(1), stream: WorkflowRef::Named(workflow(1)) };
    let complete = |bare: &mut Bare, number: u64| {
        bare.apply(Command::Send(verbs::Send { queue: queue(), messages: vec![chained(number)] }));
        let token = LockToken::new(1, [u8::try_from(number).unwrap(); 12]);
        bare.apply(Command::Receive(verbs::Receive { queue: queue(), max: 1, token }));
        let (sequence, settlement) =
            (SequenceNumber::new(number), Settlement::Complete(CompletionCommand::default()));
        let settle =
            Command::Settle(verbs::Settle { queue: queue(), token, sequence, delivery_count: 1, settlement });
        assert!(matches!(bare.apply(settle), Reply::Settle(Ok(_))));
    };
    for number in 1..=4 {
        complete(&mut bare, number);
    }
    // As if nearly as many messages as are remembered had been completed in between.
    bare.rows(|rows| {
        let mut record = rows.workflow(&key).unwrap().unwrap();
        let known = &mut record;
        (known.cursor, known.through) = (limits::LINKS_KEPT + 3, limits::LINKS_KEPT + 2);
        rows.write(Change::Workflow(key.clone(), Some(Box::new(record)))).unwrap();
    });
    complete(&mut bare, 5);
    assert_eq!(bare.rows(|rows| rows.cursor_count(key.queue).unwrap().links_cut), 2);
    let mut again = |number| match bare
        .apply(Command::Send(verbs::Send { queue: queue(), messages: vec![chained(number)] }))
    {
        Reply::Send(Ok(receipts)) => receipts[0],
        other => panic!("{other:?}"),
    };
    assert_eq!(again(1), Receipt::AlreadySettled, "the first message is always remembered");
    assert_eq!(again(4), Receipt::AlreadySettled);
    assert!(matches!(again(2), Receipt::Accepted(_)), "it is a stray");
}

#[test]
fn a_stray_behind_another_waits_by_the_time_that_has_passed_and_not_by_the_clock_on_the_wall() {
    let gap = GapPolicy { wait: Duration::from_secs(10), then: GapAction::Skip };
    let mut bare = Bare::new(QueueOptions { order: Order::After, gap, ..QueueOptions::default() });
    let start = bare.now;
    // The wall clock is an hour ahead of what has passed.
    let apply = |bare: &mut Bare, passed: u64, command: Command| {
        let engine = start + Duration::from_secs(passed);
        bare.apply_at(ClockInstants { engine, wall: engine + Duration::from_secs(3_600) }, command)
    };
    for (passed, number) in [(0, 5), (6, 9)] {
        apply(
            &mut bare,
            passed,
            Command::Send(verbs::Send { queue: queue(), messages: vec![chained(number)] }),
        );
    }
    for passed in [10, 16] {
        let due = Due::engine(start + Duration::from_secs(passed));
        let reminder = bare.rows(|rows| first_reminders(rows).unwrap().into_iter().flatten().min().unwrap());
        assert_eq!(reminder.due, due, "each stray has a wait of its own, since it came");
        apply(&mut bare, passed, Command::Remind(verbs::Remind { reminder }));
    }
    let dead_letters = bare.rows(|rows| rows.counters(QueueId(1)).unwrap().counts.dead_lettered);
    assert_eq!(dead_letters, 2);
}

#[test]
fn in_after_order_a_message_that_is_in_the_chain_is_not_taken_with_another_predecessor() {
    let mut bare = Bare::new(QueueOptions { order: Order::After, ..QueueOptions::default() });
    let send = |bare: &mut Bare, message: NewMessage| match bare
        .apply(Command::Send(verbs::Send { queue: queue(), messages: vec![message] }))
    {
        Reply::Send(answer) => answer.map(|receipts| receipts[0]),
        other => panic!("{other:?}"),
    };
    let elsewhere = |number: u64| NewMessage {
        place: Place::After(Some(MessageId::new("z").unwrap())),
        ..chained(number)
    };
    for number in 1..=2 {
        send(&mut bare, chained(number)).unwrap();
        // Its successors could not say which of the two they follow.
        let by = SequenceNumber::new(number);
        let refused = send(&mut bare, elsewhere(number)).unwrap_err();
        assert!(matches!(refused, SendRefusal::PlaceTaken { by: of, .. } if of == by), "{refused:?}");
    }
    let refused = send(&mut bare, elsewhere(1)).unwrap_err();
    assert!(matches!(refused, SendRefusal::PlaceTaken { .. }), "it has been followed: {refused:?}");
}

/// Receives the next message and completes it; its number, and what was answered to what that sends.
fn complete_next(bare: &mut Bare, sends: Vec<(QueueName, Vec<NewMessage>)>) -> (u64, Vec<Receipt>) {
    let token = LockToken::new(1, [u8::try_from(bare.now.as_millis() % 250).unwrap(); 12]);
    bare.now = bare.now + Duration::from_millis(1);
    let Reply::Receive(Ok(handed)) =
        bare.apply(Command::Receive(verbs::Receive { queue: queue(), max: 1, token }))
    else {
        panic!("a receive is not refused");
    };
    let sequence = handed[0].sequence;
    let settlement = Settlement::Complete(CompletionCommand { sends, ..CompletionCommand::default() });
    let settle =
        Command::Settle(verbs::Settle { queue: queue(), token, sequence, delivery_count: 1, settlement });
    let Reply::Settle(Ok(settled)) = bare.apply(settle) else { panic!("it is held") };
    (sequence.get(), settled.receipts)
}

#[test]
fn in_after_order_a_completion_that_sends_its_own_message_again_is_told_that_it_is_settled() {
    let mut bare = Bare::new(QueueOptions { order: Order::After, ..QueueOptions::default() });
    bare.apply(Command::Send(verbs::Send { queue: queue(), messages: vec![chained(1)] }));
    let (_, receipts) = complete_next(&mut bare, vec![(queue(), vec![chained(1)])]);
    assert_eq!(receipts, [Receipt::AlreadySettled]);
    bare.apply(Command::Send(verbs::Send { queue: queue(), messages: vec![chained(2)] }));
    let elsewhere = NewMessage { place: Place::After(chained(9).message_id), ..chained(2) };
    let (_, receipts) = complete_next(&mut bare, vec![(queue(), vec![elsewhere])]);
    assert!(matches!(receipts[..], [Receipt::DeadLettered(_)]), "its place has been passed: {receipts:?}");
}

#[test]
fn what_expired_behind_a_cancelled_message_is_passed_when_its_place_is_filled() {
    let exhausted = Some(ExhaustedPolicy::Skip);
    let mut bare = Bare::new(QueueOptions { order: Order::After, exhausted, ..QueueOptions::default() });
    let until = KeptBack::Until(bare.now + Duration::from_secs(100));
    let scheduled = NewMessage { kept_back: Some(until), ..chained(1) };
    let mortal = NewMessage { time_to_live: Some(Duration::from_secs(10)), ..chained(2) };
    let send =
        |bare: &mut Bare, messages| bare.apply(Command::Send(verbs::Send { queue: queue(), messages }));
    send(&mut bare, vec![scheduled, mortal, chained(3)]);
    bare.now = bare.now + Duration::from_secs(10);
    let reminders = bare.rows(|rows| first_reminders(rows).unwrap());
    let expiry = reminders.into_iter().flatten().find(|reminder| matches!(reminder.what, Remind::Expiry(_)));
    bare.apply(Command::Remind(verbs::Remind { reminder: expiry.unwrap() }));
    let cancel =
        Command::Cancel(verbs::Cancel { queue: queue(), sequence: SequenceNumber::new(1), void: false });
    assert!(matches!(bare.apply(cancel), Reply::Send(Ok(_))));
    let key = WorkflowKey { queue: QueueId(1), stream: WorkflowRef::Named(workflow(1)) };
    assert_eq!(bare.rows(|rows| rows.mark_from(&key, 0).unwrap()).map(|mark| mark.from > 1_000), Some(true));
    let Reply::Send(Ok(receipts)) = send(&mut bare, vec![chained(2), chained(1)]) else { panic!("refused") };
    assert!(matches!(receipts[..], [Receipt::DeadLettered(_), Receipt::Accepted(_)]), "{receipts:?}");
    let numbers: Vec<u64> = (0..2).map(|_| complete_next(&mut bare, Vec::new()).0).collect();
    assert_eq!(numbers, [receipts[1].sequence_number().unwrap().get(), 3]);
}

#[test]
fn messages_that_name_each_other_in_a_circle_are_looked_at_once_when_room_is_short() {
    let (expired, early_max) = (ExpiryPolicy::Drop, 1);
    let order = Order::After;
    let mut bare = Bare::new(QueueOptions { order, expired, early_max, ..QueueOptions::default() });
    let circle = |number: u64, after: u64| NewMessage {
        place: Place::After(chained(after).message_id),
        ..chained(number)
    };
    let send = |bare: &mut Bare, messages| match bare
        .apply(Command::Send(verbs::Send { queue: queue(), messages }))
    {
        Reply::Send(answer) => answer,
        other => panic!("{other:?}"),
    };
    let mortal = NewMessage { time_to_live: Some(Duration::from_secs(10)), ..circle(2, 3) };
    send(&mut bare, vec![mortal]).unwrap();
    bare.now = bare.now + Duration::from_secs(10);
    let reminders = bare.rows(|rows| first_reminders(rows).unwrap());
    let expiry = reminders.into_iter().flatten().find(|reminder| matches!(reminder.what, Remind::Expiry(_)));
    bare.apply(Command::Remind(verbs::Remind { reminder: expiry.unwrap() }));
    send(&mut bare, vec![circle(3, 2)]).unwrap();
    let first = NewMessage { place: Place::After(None), ..chained(2) };
    send(&mut bare, vec![first, circle(9, 8)]).unwrap();
}
