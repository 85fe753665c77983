//! What one turn writes fits into an entry of the log, whatever is asked at once.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::SystemClock;
use crate::engine::Client;
use crate::engine::Engine;
use crate::engine::client::delivery::Delivery;
use crate::engine::client::outcome::Outcome;
use crate::engine::client::settling::Abandon;
use crate::engine::client::topic::Topic;
use crate::engine::client::topic_message::TopicMessage;
use crate::engine::client::transaction::Transaction;
use crate::engine::open::begin;
use crate::engine::rules::log_weight::LogWeight;
use crate::engine::store::Store;
use crate::engine::store::StoreOptions;
use crate::engine::store::shared_log::SharedLog;
use crate::engine::tests::log::server::Servers;
use crate::error::SendError;
use crate::header::Properties;
use crate::header::PropertyValue;
use crate::id::QueueName;
use crate::limits;
use crate::message::Message;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::topic::Rule;

/// An engine behind servers in memory, on a thread of its own.
fn engine(folder: &std::path::Path, servers: &Servers) -> Engine {
    let log = Arc::new(SharedLog::new(servers.clone()));
    let mut store = Store::open_behind(&folder.join("engine.redb"), StoreOptions::default(), log).unwrap();
    store.take_over(1).unwrap();
    let (engine, writer) = begin(store, Arc::new(SystemClock::default())).unwrap();
    std::thread::Builder::new().spawn(move || writer.run()).unwrap();
    engine
}

fn large(workflow: String) -> Message {
    Message::new(vec![7; 400 * 1024]).workflow(workflow)
}

/// Sends so many large messages at once, each on its own.
async fn send_at_once(client: &Client, count: usize) {
    let queue = client.queue("q").unwrap();
    let sends = (0..count).map(|number| queue.send(large(format!("w{number}"))));
    for sent in futures_util::future::join_all(sends).await {
        sent.unwrap();
    }
}

#[tokio::test]
async fn no_entry_is_larger_than_servers_take_whatever_is_asked_at_once() {
    let (folder, servers) = (tempfile::tempdir().unwrap(), Servers::sound());
    let engine = engine(folder.path(), &servers);
    let client = engine.client().clone();
    let options = QueueOptions { body_bytes_max: 64 * 1024 * 1024, ..QueueOptions::default() };
    let queue = client.create_queue("q", options).await.unwrap();
    send_at_once(&client, 60).await;
    // The longest workflow IDs that there are, in as many messages as a batch may have.
    let wide = |number: usize| format!("{number:0>4}{}", "\u{1F980}".repeat(124));
    let body = vec![7; limits::LOG_COMMAND_BYTES_MAX / limits::SEND_BATCH_MAX - 64];
    let batch = (0..limits::SEND_BATCH_MAX)
        .map(|number| Message::new(body.clone()).workflow(wide(number)).message_id(wide(number)));
    let receiving = queue.receive_many(1_024, Duration::from_secs(60));
    let sending = async {
        send_at_once(&client, 20).await;
        queue.send_batch(batch).await
    };
    let (received, sent) = tokio::join!(receiving, sending);
    assert_eq!(sent.unwrap().len(), limits::SEND_BATCH_MAX);
    let mut completed = 0;
    let mut deliveries = received.unwrap();
    while !deliveries.is_empty() {
        completed += deliveries.len();
        queue.complete_all(&mut deliveries).await.unwrap();
        deliveries = queue.receive_many(1_024, Duration::ZERO).await.unwrap();
    }
    assert_eq!(completed, 80 + limits::SEND_BATCH_MAX);
    let largest = servers.largest_entry();
    assert!(largest <= limits::LOG_ENTRY_BYTES, "an entry has {largest} bytes");
    assert!(largest > limits::LOG_COMMAND_BYTES_MAX, "nothing came near to the bound: {largest}");
    engine.close().await;
}

#[tokio::test]
async fn what_is_too_large_for_an_entry_is_refused_in_words_and_nothing_is_lost() {
    let (folder, servers) = (tempfile::tempdir().unwrap(), Servers::sound());
    let engine = engine(folder.path(), &servers);
    let options = QueueOptions { body_bytes_max: 64 * 1024 * 1024, ..QueueOptions::default() };
    let queue = engine.client().create_queue("q", options).await.unwrap();
    let most = limits::LOG_COMMAND_BYTES_MAX;
    let refused = queue.send(Message::new(vec![0; most + 1])).await.unwrap_err();
    assert!(matches!(refused, SendError::Misuse(_)), "{refused:?}");
    let expected = format!("has {} bytes, at most {most} are allowed on a cluster", most + 1);
    assert!(refused.to_string().contains(&expected), "{refused}");
    let batch = (0..10).map(|number| large(format!("w{number}")));
    assert!(matches!(queue.send_each(batch).await, Err(SendError::Misuse(_))));
    queue.send(Message::new(vec![0; most])).await.unwrap();
    assert_eq!(queue.view().await.unwrap().counts.stored(), 1);
    engine.close().await;
}

/// A message with as many rows as one has when it is accepted, and IDs of so many characters.
fn with_many_rows(number: usize, characters: usize) -> Message {
    let id = format!("{number:0>5}{}", "\u{1F980}".repeat(characters - 5));
    Message::new("x").workflow(id.clone()).message_id(id).time_to_live(Duration::from_secs(3_600))
}

/// Those whose rows are the most bytes, and those of which there are the most.
const CHARACTERS: [usize; 2] = [limits::WORKFLOW_ID_CHARS_MAX, 5];

fn remembering() -> QueueOptions {
    QueueOptions { duplicate_window: Some(Duration::from_secs(3_600)), ..QueueOptions::default() }
}

/// The same of one that waits for another: all that is known of its chain is written, too.
fn behind_another(number: usize, characters: usize) -> Message {
    let other = "\u{1F980}".repeat(characters);
    with_many_rows(number, characters).after(other)
}

/// As many as are let through, where so many copies are made of each.
fn most(copies: usize, message: impl Fn(usize) -> Message) -> usize {
    let mut weight = LogWeight::default();
    let fits = |number: &usize| {
        let message = message(*number).check().unwrap();
        weight.add_messages(&vec![message; copies]);
        weight.bytes() <= limits::LOG_COMMAND_BYTES_MAX
    };
    (0..).take_while(fits).count()
}

fn assert_too_large<T>(answer: Result<T, SendError>) {
    let refused = answer.err().expect("it is too large").to_string();
    let expected = format!("at most {} are allowed on a cluster", limits::LOG_COMMAND_BYTES_MAX);
    assert!(refused.contains(&expected), "{refused}");
}

fn assert_fits(servers: &Servers) {
    let largest = servers.largest_entry();
    assert!(largest <= limits::LOG_ENTRY_BYTES, "an entry has {largest} bytes");
}

#[tokio::test]
async fn as_many_messages_in_one_send_as_are_let_through_fit_into_an_entry_and_one_more_is_refused() {
    for characters in CHARACTERS {
        let (folder, servers) = (tempfile::tempdir().unwrap(), Servers::sound());
        let engine = engine(folder.path(), &servers);
        let queue = engine.client().create_queue("q", remembering()).await.unwrap();
        let most = most(1, |number| with_many_rows(number, characters));
        assert!(most > limits::SEND_BATCH_MAX, "{most}");
        let batch = |count| (0..count).map(|number| with_many_rows(number, characters));
        assert_too_large(queue.send_whole(batch(most + 1), usize::MAX).await);
        assert_eq!(queue.send_whole(batch(most), usize::MAX).await.unwrap().len(), most);
        assert_fits(&servers);
        engine.close().await;
    }
}

#[tokio::test]
async fn as_many_messages_behind_others_as_are_let_through_fit_into_an_entry_and_one_more_is_refused() {
    for characters in CHARACTERS {
        let (folder, servers) = (tempfile::tempdir().unwrap(), Servers::sound());
        let engine = engine(folder.path(), &servers);
        let options = QueueOptions { order: Order::After, ..remembering() };
        let queue = engine.client().create_queue("q", options).await.unwrap();
        let most = most(1, |number| behind_another(number, characters));
        let batch = |count| (0..count).map(|number| behind_another(number, characters));
        assert_too_large(queue.send_whole(batch(most + 1), usize::MAX).await);
        assert_eq!(queue.send_whole(batch(most), usize::MAX).await.unwrap().len(), most);
        assert_fits(&servers);
        engine.close().await;
    }
}

/// Subscriptions of a topic, each of which wants everything.
const SUBSCRIPTIONS: usize = 16;

async fn topic(client: &Client) -> Topic {
    let topic = client.create_topic("t").await.unwrap();
    for number in 0..SUBSCRIPTIONS {
        topic.subscribe(format!("s{number}"), remembering(), [Rule::everything()]).await.unwrap();
    }
    topic
}

#[tokio::test]
async fn as_many_copies_of_one_send_as_are_let_through_fit_into_an_entry_and_one_more_is_refused() {
    for characters in CHARACTERS {
        let (folder, servers) = (tempfile::tempdir().unwrap(), Servers::sound());
        let engine = engine(folder.path(), &servers);
        let topic = topic(engine.client()).await;
        let most = most(SUBSCRIPTIONS, |number| with_many_rows(number, characters));
        let batch = |count| (0..count).map(|number| with_many_rows(number, characters));
        assert_too_large(topic.send_batch(batch(most + 1)).await);
        assert_eq!(topic.send_batch(batch(most)).await.unwrap().len(), most * SUBSCRIPTIONS);
        assert_fits(&servers);
        engine.close().await;
    }
}

fn published(topic: &Topic, count: usize, characters: usize) -> Transaction {
    let mut transaction = Transaction::new(topic.client().clone());
    for number in 0..count {
        let message = with_many_rows(number, characters).check().unwrap();
        transaction.publish(topic, TopicMessage::from(message));
    }
    transaction
}

#[tokio::test]
async fn as_many_copies_of_one_transaction_as_are_let_through_fit_into_an_entry_and_one_more_is_refused() {
    for characters in CHARACTERS {
        let (folder, servers) = (tempfile::tempdir().unwrap(), Servers::sound());
        let engine = engine(folder.path(), &servers);
        let topic = topic(engine.client()).await;
        let most = most(SUBSCRIPTIONS, |number| with_many_rows(number, characters));
        let refused = published(&topic, most + 1, characters).commit().await.unwrap_err();
        assert!(refused.to_string().contains("are allowed on a cluster"), "{refused}");
        published(&topic, most, characters).commit().await.unwrap();
        assert_fits(&servers);
        engine.close().await;
    }
}

/// Gives deliveries back, each with a property more.
fn abandoned(client: &Client, queue: &QueueName, deliveries: &[Delivery]) -> Transaction {
    let mut transaction = Transaction::new(client.clone());
    for delivery in deliveries {
        let changed = Properties::from([("tried".to_owned(), PropertyValue::from("yes"))]);
        let outcome = Outcome::Abandon(Abandon::now());
        transaction.end_with(queue, delivery.id(), (outcome, changed)).unwrap();
    }
    transaction
}

#[tokio::test]
async fn as_many_bodies_as_a_transaction_may_write_again_fit_into_an_entry_and_one_more_is_refused() {
    let (folder, servers) = (tempfile::tempdir().unwrap(), Servers::sound());
    let engine = engine(folder.path(), &servers);
    let client = engine.client();
    let queue = client.create_queue("q", QueueOptions::default()).await.unwrap();
    let most = (limits::LOG_COMMAND_BYTES_MAX + limits::LOG_ROWS_BYTES) / large(String::new()).body().len();
    send_at_once(client, most + 1).await;
    let mut deliveries = Vec::new();
    while deliveries.len() <= most {
        deliveries.extend(queue.receive_many(1_024, Duration::ZERO).await.unwrap());
    }
    let refused = abandoned(client, queue.name(), &deliveries).commit().await.unwrap_err();
    assert!(refused.to_string().contains("are allowed on a cluster"), "{refused}");
    abandoned(client, queue.name(), &deliveries[1..]).commit().await.unwrap();
    assert_eq!(queue.view().await.unwrap().counts.locked, 1);
    assert_fits(&servers);
    engine.close().await;
}
