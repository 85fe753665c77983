//! Opening behind a log: what was handed out is given back, whatever else is due.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::engine::open::begin;
use crate::engine::rules::Rules;
use crate::engine::rules::command::Retry;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::record::Counts;
use crate::engine::rules::records::Records;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::store::Store;
use crate::engine::store::StoreOptions;
use crate::engine::store::shared_log::SharedLog;
use crate::engine::tests::log::server::Servers;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::limits;
use crate::message::Message;
use crate::message::NewMessage;
use crate::queue::ExhaustedPolicy;
use crate::queue::QueueOptions;
use crate::testing::ManualClock;
use crate::token::LockToken;

/// The longest name that a workflow or a message can have: a step of a quarantine then writes more than a turn should.
fn long(number: u64) -> String {
    format!("{number:0>4}{}", "\u{1F980}".repeat(124))
}

fn message(workflow: String, position: u64) -> NewMessage {
    Message::new("").workflow(workflow).message_id(long(position)).position(position).check().unwrap()
}

#[test]
fn what_was_handed_out_is_given_back_also_when_what_is_due_fills_the_first_turn() {
    let (folder, start) = (tempfile::tempdir().unwrap(), Timestamp::from_millis(1_700_000_000_000));
    let log = Arc::new(SharedLog::new(Servers::sound()));
    let mut store = Store::open_behind(&folder.path().join("a.redb"), StoreOptions::default(), log).unwrap();
    store.take_over(1).unwrap();
    let (mut rules, queue) = (Rules::default(), QueueName::new("q").unwrap());
    let mut ask = |command| {
        let asked = store.turn(|turn| {
            turn.stamp(start);
            rules.apply(ClockInstants::same(start), command, turn)
        });
        asked.unwrap();
    };
    let send = |messages| Command::Send(verbs::Send { queue: queue.clone(), messages });
    let receive = |token| Command::Receive(verbs::Receive { queue: queue.clone(), max: 1, token });
    let exhausted = Some(ExhaustedPolicy::Quarantine);
    let options = QueueOptions { delivery_count_max: 1, exhausted, ..QueueOptions::by_position() };
    ask(Command::CreateQueue(verbs::CreateQueue { name: queue.clone(), options: Box::new(options) }));
    ask(send(vec![message("locked".to_owned(), 1)]));
    ask(receive(LockToken::new(1, [1; 12])));
    let step = limits::SWEEP_MAX as u64;
    for first in [1, 1 + step, 1 + 2 * step] {
        ask(send((first..first + step).map(|position| message(long(0), position)).collect()));
    }
    let (token, sequence) = (LockToken::new(1, [2; 12]), SequenceNumber::new(2));
    ask(receive(token));
    let settlement = Settlement::Abandon {
        retry: Retry::Now,
        reason: "no good".to_owned(),
        properties: Default::default(),
        output: Default::default(),
    };
    ask(Command::Settle(verbs::Settle {
        queue: queue.clone(),
        token,
        sequence,
        delivery_count: 1,
        settlement,
    }));
    let (_engine, mut writer) = begin(store, Arc::new(ManualClock::new(start))).unwrap();
    let counts = writer.store.prepare(|turn| {
        let queue = turn.queue_named(&queue)?.expect("it was created");
        Ok(turn.counters(queue.id)?.counts)
    });
    let Counts { locked, dead_lettered, .. } = counts.unwrap().0;
    assert!(dead_lettered > step, "a step of the quarantine came before");
    assert_eq!(locked, 0);
}
