//! What holds for the thread that writes, driven by hand.

use std::task::Context;
use std::task::Poll;
use std::task::Waker;

use bytes::Bytes;

use super::*;
use crate::clock::SystemClock;
use crate::engine::letter::letter;
use crate::engine::open::Engine;
use crate::engine::open::begin;
use crate::engine::rules::topic_record::Fanout;
use crate::engine::rules::verbs::Publish;
use crate::engine::rules::verbs::PublishOnce;
use crate::engine::rules::verbs::Send;
use crate::engine::store::StoreOptions;
use crate::engine::store::lock_file::LockFile;
use crate::id::IdempotencyKey;
use crate::id::QueueName;
use crate::message::Message;
use crate::message::NewMessage;
use crate::message::Place;
use crate::queue::QueueOptions;

fn messages(count: usize) -> Vec<NewMessage> {
    let message = NewMessage {
        workflow_id: None,
        place: Place::Arrival,
        message_id: None,
        time_to_live: None,
        kept_back: None,
        headers: Default::default(),
        body: Bytes::new(),
    };
    vec![message; count]
}

fn send(count: usize) -> Command {
    Command::Send(Send { queue: QueueName::new("q").unwrap(), messages: messages(count) })
}

/// So many copies of one message.
fn fanout(count: usize) -> Fanout {
    let copies = vec![(QueueName::new("q").unwrap(), messages(count))];
    Fanout { revision: 1, copies, origins: Vec::new() }
}

fn publish(count: usize) -> Command {
    Command::Publish(Publish { topic: QueueName::new("t").unwrap(), fanout: fanout(count) })
}

fn publish_once(count: usize) -> Command {
    let key = IdempotencyKey::new("k", 1).unwrap();
    Command::PublishOnce(PublishOnce { topic: QueueName::new("t").unwrap(), key, fanout: fanout(count) })
}

#[test]
fn a_turn_ends_behind_a_send_of_very_many_messages_or_copies_and_the_next_goes_on() {
    let store = Store::in_memory(StoreOptions::default()).unwrap();
    let (_engine, mut writer) = begin(store, Arc::new(SystemClock::default())).unwrap();
    let (few, many) = (limits::SEND_BATCH_MAX, limits::SEND_BATCH_MAX + 1);
    let topics = [publish(few), publish(many), publish_once(few), publish_once(many), publish(few)];
    let asked = [send(few), send(many)].into_iter().chain(topics);
    for command in asked {
        let (letter, _answer) = letter(command, None, |_| {});
        writer.inbox.post_at_once(Request::Ask(letter));
    }
    for count in [2, 2, 2, 1] {
        assert_eq!(writer.gather().commands.len(), count);
    }
}

#[test]
fn whoever_gets_the_lock_of_an_engine_that_ends_can_open_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    for _ in 0..5 {
        let store = Store::open(&path, StoreOptions::default()).unwrap();
        let (_engine, writer) = begin(store, Arc::new(SystemClock::default())).unwrap();
        let stop = move || writer.stop(Unavailable::Closed);
        let thread = std::thread::Builder::new().spawn(stop).unwrap();
        let lock = loop {
            match LockFile::take(&path) {
                Ok(lock) => break lock,
                Err(_) => std::thread::yield_now(),
            }
        };
        drop(redb::Database::open(&path).expect("nobody has it open"));
        drop(lock);
        thread.join().unwrap();
    }
}

/// Asks something, and serves it.
fn served<T>(writer: &mut Writer, asked: impl Future<Output = T>) -> T {
    let mut asked = std::pin::pin!(asked);
    let mut context = Context::from_waker(Waker::noop());
    assert!(asked.as_mut().poll(&mut context).is_pending());
    let gathered = writer.gather();
    writer.serve(gathered.commands, gathered.looks, gathered.backups).unwrap();
    match asked.poll(&mut context) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("a small turn is committed before the next"),
    }
}

#[tokio::test]
async fn what_the_last_commits_hand_out_to_nobody_counts_no_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    let store = Store::open(&path, StoreOptions::default()).unwrap();
    let (engine, mut writer) = begin(store, Arc::new(SystemClock::default())).unwrap();
    let queue = served(&mut writer, engine.client().create_queue("q", QueueOptions::default())).unwrap();
    served(&mut writer, queue.send(Message::new("hello"))).unwrap();
    let mut received = Box::pin(queue.receive(Duration::ZERO));
    assert!(received.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let commands = writer.gather().commands;
    let (job, release, _) = writer.turn(commands).unwrap();
    drop(received);
    writer.commits.hand_over(job, release).unwrap();
    writer.stop(Unavailable::Closed);
    let engine = Engine::open(&path).await.unwrap();
    let queue = engine.client().queue("q").unwrap();
    let mut delivery = queue.receive(Duration::ZERO).await.unwrap().expect("it is offered again");
    assert_eq!(delivery.message().delivery_count, 1);
    delivery.complete().await.unwrap();
    engine.close().await;
}
