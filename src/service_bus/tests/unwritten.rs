//! What was never written to a client was not received by it, however its link ends.

use std::time::Duration;

use crate::amqp::Value;
use crate::amqp::tests::peer::Attach;
use crate::amqp::tests::peer::Performative;
use crate::amqp::tests::peer::Target;
use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::engine::Counts;
use crate::engine::Queue;
use crate::id::SequenceNumber;
use crate::message::Message;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::tests::bare::Bare;
use crate::service_bus::tests::bare::Fixture;
use crate::service_bus::tests::bare::attach;
use crate::service_bus::tests::bare::credit;
use crate::service_bus::tests::bare::deleting;
use crate::service_bus::tests::bare::receiver;
use crate::service_bus::tests::bare::request;
use crate::service_bus::tests::bare::transfer;
use crate::service_bus::tests::bare::window;

/// What a client does that ends what it has.
#[derive(Clone, Copy, Debug)]
enum RuleBreak {
    /// It attaches a link of the same name.
    Link,
    /// It attaches a handle that is attached.
    Session,
    /// It says what is no frame.
    Connection,
}

const BREACHES: [RuleBreak; 3] = [RuleBreak::Link, RuleBreak::Session, RuleBreak::Connection];

/// The handle of the link that is about to end.
const HANDLE: u32 = 0;

/// Breaks a rule, and hears that something has ended.
async fn break_rule(bare: &mut Bare, breach: RuleBreak, asked: Attach) {
    match breach {
        RuleBreak::Link => {
            bare.says([attach(Attach { handle: 9, ..asked })]).await;
            bare.frames_until(|frame| matches!(frame, Performative::Detach(_))).await;
        }
        RuleBreak::Session => {
            bare.says([attach(Attach { name: "another".into(), ..asked })]).await;
            bare.frames_until(|frame| matches!(frame, Performative::End(_))).await;
        }
        RuleBreak::Connection => {
            bare.says_bytes(&[0; 8]).await;
            bare.frames_until(|frame| matches!(frame, Performative::Close(_))).await;
        }
    }
}

/// The same credit, in a session that takes only so many transfers.
fn narrow(credit: Performative, transfers: u32) -> Performative {
    match credit {
        Performative::Flow(flow) => Performative::Flow(window(flow, transfers)),
        other => other,
    }
}

/// What a queue has as soon as it is as wanted, or after a while.
async fn counts_when(queue: &Queue, is_wanted: impl Fn(&Counts) -> bool) -> Counts {
    let began = SystemClock::default();
    loop {
        let counts = queue.view().await.unwrap().counts;
        if is_wanted(&counts) || began.elapsed() > Duration::from_secs(10) {
            return counts;
        }
        tokio::task::yield_now().await;
    }
}

async fn stage() -> (Fixture, Queue) {
    let fixture = Fixture::open().await;
    let options = QueueOptions { order: Order::None, ..QueueOptions::default() };
    let queue = fixture.client().create_queue("q", options).await.unwrap();
    for number in 0..5 {
        queue.send(Message::new(number.to_string())).await.unwrap();
    }
    (fixture, queue)
}

#[tokio::test]
async fn what_was_not_written_to_who_receives_and_deletes_is_not_deleted() {
    for breach in BREACHES {
        let (fixture, queue) = stage().await;
        let mut bare = Bare::connect(&fixture).await;
        let asked = deleting(receiver(HANDLE, "q"));
        bare.attach_with(asked.clone()).await;
        bare.says([narrow(credit(HANDLE, 0, 5), 2)]).await;
        assert_eq!(bare.bodies(2).await, ["0", "1"]);
        break_rule(&mut bare, breach, asked).await;
        let counts = counts_when(&queue, |counts| counts.locked == 0).await;
        assert_eq!((counts.completed, counts.ready), (2, 3), "{breach:?}: {counts:?}");
    }
}

#[tokio::test]
async fn what_was_not_written_to_who_settles_goes_back_uncounted() {
    for breach in BREACHES {
        let (fixture, queue) = stage().await;
        let mut bare = Bare::connect(&fixture).await;
        let asked = receiver(HANDLE, "q");
        bare.attach_with(asked.clone()).await;
        bare.says([narrow(credit(HANDLE, 0, 5), 2)]).await;
        assert_eq!(bare.bodies(2).await, ["0", "1"]);
        break_rule(&mut bare, breach, asked).await;
        let counts = counts_when(&queue, |counts| counts.ready == 3).await;
        assert_eq!((counts.locked, counts.ready), (2, 3), "{breach:?}: {counts:?}");
        let views = queue.peek(SequenceNumber::new(0), 5).await.unwrap();
        let back = views.iter().filter(|view| view.locked_until.is_none());
        assert!(back.into_iter().all(|view| view.delivery_count == 0), "{breach:?}");
    }
}

/// A link for answers, and one for requests, to the management of the queue.
async fn manage(bare: &mut Bare) -> Attach {
    let asked = Attach {
        target: Some(Target { address: Some("there".into()), ..Target::default() }),
        ..receiver(HANDLE, "q/$management")
    };
    bare.attach_with(asked.clone()).await;
    bare.attach_sender(1, "q/$management").await;
    asked
}

/// Asks for a message that is set aside, to have it deleted.
fn asks_for(number: SequenceNumber) -> Performative {
    let number = Value::Long(i64::try_from(number.get()).unwrap());
    let asked = vec![
        (Value::string("sequence-numbers"), Value::Array(vec![number])),
        (Value::string("receiver-settle-mode"), Value::Uint(0)),
    ];
    transfer(1, 0, false, &request("com.microsoft:receive-by-sequence-number", asked))
}

/// Sets the first message aside, and says its number.
async fn set_aside(queue: &Queue) -> SequenceNumber {
    let mut delivery = queue.receive(Duration::ZERO).await.unwrap().expect("there are some");
    delivery.defer().await.unwrap();
    delivery.sequence_number()
}

#[tokio::test]
async fn what_was_asked_for_to_be_deleted_stays_when_the_answer_was_not_written() {
    for breach in BREACHES {
        let (fixture, queue) = stage().await;
        let number = set_aside(&queue).await;
        let mut bare = Bare::connect(&fixture).await;
        let asked = manage(&mut bare).await;
        bare.says([narrow(credit(HANDLE, 0, 5), 0), asks_for(number)]).await;
        counts_when(&queue, |counts| counts.locked == 1).await;
        // The answer to an attach comes after that to the request, which waits for the window.
        bare.attach_receiver(5, "q").await;
        break_rule(&mut bare, breach, asked).await;
        let counts = counts_when(&queue, |counts| counts.locked == 0).await;
        assert_eq!((counts.completed, counts.by_consumer), (0, 1), "{breach:?}: {counts:?}");
    }
}
