//! What one command does has a bound.

use crate::clock::Timestamp;
use crate::engine::rules::Rules;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::crash::play::Model;
use crate::engine::tests::crash::play::Turn;
use crate::id::QueueName;
use crate::id::WorkflowId;
use crate::limits;
use crate::message::Message;
use crate::queue::QueueOptions;
use crate::token::LockToken;

/// How many messages of the workflow have expired when the holder asks for two.
const EXPIRED: u64 = 6_000;

#[test]
fn one_receive_expires_a_limited_number() {
    let (queue, token) = (QueueName::new("q").unwrap(), LockToken::new(1, [1; 12]));
    let (mut model, mut rules) = (Model::default(), Rules::default());
    let mut play = |seconds: u64, command: Command| {
        let now = Timestamp::from_millis(1_000_000 + 1_000 * seconds);
        model.play(&mut rules, &Turn { now, commands: vec![command], is_idle: false })
    };
    play(
        0,
        Command::CreateQueue(verbs::CreateQueue {
            name: queue.clone(),
            options: Box::new(QueueOptions::default()),
        }),
    );
    let short = Message::new("dead").workflow("w").time_to_live(std::time::Duration::from_secs(1));
    let (live, short) = (Message::new("live").workflow("w").check().unwrap(), short.check().unwrap());
    play(0, Command::Send(verbs::Send { queue: queue.clone(), messages: vec![live] }));
    for _ in 0..EXPIRED / 1_000 {
        play(0, Command::Send(verbs::Send { queue: queue.clone(), messages: vec![short.clone(); 1_000] }));
    }
    let workflow = Some(WorkflowId::new("w").unwrap());
    play(0, Command::AcceptWorkflow(verbs::AcceptWorkflow { queue: queue.clone(), workflow, token }));
    let mut replies =
        play(2, Command::ReceiveFromWorkflow(verbs::ReceiveFromWorkflow { queue, token, max: 2 }));
    let Some(Reply::Receive(Ok(handed))) = replies.pop() else { panic!("{replies:?}") };
    assert_eq!(handed.len(), 1, "the one that lives");
    let moved: u64 = model.rows.counters.values().map(|counters| counters.counts.dead_lettered).sum();
    let most = (limits::EXPIRED_IN_A_ROW_MAX + limits::REMINDERS_PER_TURN + 1) as u64;
    assert!(moved > 0 && moved <= most, "{moved} of {EXPIRED} were moved before the holder got its answer");
}
