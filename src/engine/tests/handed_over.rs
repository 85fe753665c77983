//! What another partition hands over is stored once, however late it is asked again, and is kept in mind no longer than it can be.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::rules::Rules;
use crate::engine::rules::change::Change;
use crate::engine::rules::command::HandoverAnswer;
use crate::engine::rules::command::HandoverSource;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::record::HandoverMark;
use crate::engine::rules::record::KeptHandover;
use crate::engine::rules::records::MutableRecords;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::store::Store;
use crate::engine::store::StoreOptions;
use crate::error::SendRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::limits;
use crate::message::Message;
use crate::queue::QueueOptions;

/// The partition of the outbox.
const SOURCE: u16 = 7;

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A partition that others hand messages over to.
struct Target {
    rules: Rules,
    store: Store,
    now: Timestamp,
}

fn number(number: u64) -> SequenceNumber {
    SequenceNumber::new(number)
}

/// Hands over a message in an epoch.
fn source(epoch: u32, sequence: u64) -> HandoverSource {
    let (digest, settled) = (sequence, Vec::new());
    HandoverSource { partition: SOURCE, epoch, number: number(sequence), digest, settled, wants_kept: false }
}

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

impl Target {
    fn new() -> Target {
        let store = Store::in_memory(StoreOptions::default()).unwrap();
        Target { rules: Rules::default(), store, now: Timestamp::from_millis(1_000_000) }
    }

    fn with_queue() -> Target {
        let mut target = Target::new();
        target.create_queue();
        target
    }

    fn create_queue(&mut self) {
        let options = Box::new(QueueOptions::default());
        self.apply(Command::CreateQueue(verbs::CreateQueue { name: queue(), options }));
    }

    fn apply(&mut self, command: Command) -> Reply {
        let Target { rules, store, now } = self;
        let applied = store.turn(|turn| {
            let applied = rules.apply(ClockInstants::same(*now), command, turn)?;
            turn.stamp(*now);
            Ok(applied.reply)
        });
        applied.unwrap()
    }

    fn hand_over(&mut self, source: HandoverSource) -> Result<HandoverAnswer, SendRefusal> {
        let message = Message::new("body").workflow("w").check().unwrap();
        match self.apply(Command::HandOver(verbs::HandOver { source, queue: queue(), message })) {
            Reply::HandOver(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    fn rows<T>(&mut self, look: impl Fn(&mut dyn MutableRecords) -> T) -> T {
        self.store.turn(|turn| Ok(look(turn))).unwrap()
    }

    /// How many messages were accepted.
    fn accepted(&mut self) -> u64 {
        self.rows(|rows| {
            let queue = rows.queue_named(&queue()).unwrap().unwrap();
            rows.counters(queue.id).unwrap().counts.accepted
        })
    }

    /// What is kept in mind.
    fn kept(&mut self) -> Vec<u64> {
        let mark = self.rows(|rows| rows.handover_mark(SOURCE).unwrap()).unwrap_or_default();
        mark.kept.iter().map(|kept| kept.number.get()).collect()
    }
}

fn taken(kept: &[u64]) -> Result<HandoverAnswer, SendRefusal> {
    Ok(HandoverAnswer::Taken { kept: kept.iter().copied().map(number).collect() })
}

#[test]
fn what_is_handed_over_again_is_stored_once_however_late_it_is_asked() {
    let mut target = Target::with_queue();
    assert_eq!(target.hand_over(source(1, 5)), taken(&[]));
    for epoch in 1..4 {
        target.now = target.now + YEAR;
        assert_eq!(target.hand_over(source(epoch, 5)), taken(&[]), "it is answered as the first time");
    }
    assert_eq!(target.accepted(), 1);
    assert_eq!(target.hand_over(HandoverSource { partition: 8, ..source(1, 5) }), taken(&[]));
    assert_eq!(target.accepted(), 2, "a number is one of the outbox of each partition");
}

#[test]
fn what_is_settled_in_the_outbox_is_not_kept_in_mind_any_more() {
    let mut target = Target::with_queue();
    for sequence in [4, 9, 6] {
        target.hand_over(source(1, sequence)).unwrap();
    }
    assert_eq!(target.kept(), [4, 6, 9]);
    let settled = vec![number(9), number(4), number(1)];
    target.hand_over(HandoverSource { settled, ..source(1, 10) }).unwrap();
    assert_eq!(target.kept(), [6, 10]);
    // What is asked is not settled, whatever is said.
    target.hand_over(HandoverSource { settled: vec![number(6)], ..source(1, 6) }).unwrap();
    assert_eq!((target.kept(), target.accepted()), (vec![6, 10], 4));
}

#[test]
fn an_owner_of_an_outbox_that_was_deposed_hands_nothing_over_any_more() {
    let mut target = Target::with_queue();
    target.hand_over(source(2, 5)).unwrap();
    target.hand_over(HandoverSource { settled: vec![number(5)], ..source(3, 6) }).unwrap();
    // It hung since it took the message, and has not heard that it is settled.
    assert_eq!(target.hand_over(source(2, 5)), Ok(HandoverAnswer::Outdated));
    assert_eq!((target.accepted(), target.kept()), (2, vec![6]));
}

#[test]
fn whoever_begins_to_hand_over_hears_what_is_kept_in_mind_of_owners_before() {
    let mut target = Target::with_queue();
    target.hand_over(source(1, 5)).unwrap();
    target.hand_over(source(1, 6)).unwrap();
    let begins = |sequence| HandoverSource { wants_kept: true, ..source(2, sequence) };
    assert_eq!(target.hand_over(begins(7)), taken(&[5, 6]));
    assert_eq!(target.hand_over(begins(6)), taken(&[5, 7]), "also with one that it has already");
    assert_eq!(target.accepted(), 3);
}

#[test]
fn what_is_refused_is_not_kept_in_mind_and_can_be_handed_over_later() {
    let mut target = Target::new();
    assert_eq!(target.hand_over(source(1, 5)), Err(SendRefusal::QueueNotFound(queue())));
    assert_eq!(target.kept(), [0; 0]);
    target.create_queue();
    assert_eq!(target.hand_over(source(1, 5)), taken(&[]));
    let another = HandoverSource { digest: 0, ..source(1, 5) };
    assert!(matches!(target.hand_over(another), Err(SendRefusal::KeyReused(_))), "it is another message");
    assert_eq!(target.accepted(), 1);
}

#[test]
fn no_more_is_kept_in_mind_than_so_much_and_what_is_known_is_still_answered() {
    let mut target = Target::with_queue();
    let most = limits::HANDOVERS_KEPT_MAX as u64;
    let kept = (1..=most).map(|sequence| KeptHandover { number: number(sequence), digest: sequence });
    let mark = HandoverMark { epoch: 1, kept: kept.collect() };
    target.rows(|rows| rows.write(Change::Handovers(SOURCE, Some(Arc::new(mark.clone())))).unwrap());
    assert_eq!(target.hand_over(source(1, most + 1)), Err(SendRefusal::TooManyKeys { kept: most }));
    assert_eq!(target.hand_over(source(1, most)), taken(&[]));
    let settled = vec![number(1)];
    assert_eq!(target.hand_over(HandoverSource { settled, ..source(1, most + 1) }), taken(&[]));
    assert_eq!(target.accepted(), 1);
}

#[test]
fn an_owner_that_begins_where_no_more_is_kept_hears_what_is_and_can_go_on() {
    let mut target = Target::with_queue();
    let most = limits::HANDOVERS_KEPT_MAX as u64;
    let kept = (1..=most).map(|sequence| KeptHandover { number: number(sequence), digest: sequence });
    let mark = HandoverMark { epoch: 1, kept: kept.collect() };
    target.rows(|rows| rows.write(Change::Handovers(SOURCE, Some(Arc::new(mark.clone())))).unwrap());
    let begins = HandoverSource { wants_kept: true, ..source(2, most + 1) };
    let Ok(HandoverAnswer::Full { kept }) = target.hand_over(begins) else { panic!("it has no room") };
    assert_eq!(kept.len(), limits::HANDOVERS_KEPT_MAX);
    assert_eq!(target.accepted(), 0);
    assert_eq!(target.hand_over(source(1, 1)), Ok(HandoverAnswer::Outdated), "another has begun since");
    let settled = kept.into_iter().take(limits::HANDOVERS_SETTLED_MAX).collect();
    assert_eq!(target.hand_over(HandoverSource { settled, ..source(2, most + 1) }), taken(&[]));
    assert_eq!(target.accepted(), 1);
}
