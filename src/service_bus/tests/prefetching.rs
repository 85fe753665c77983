//! A receiver that lets locks run out in its buffer is sent less ahead, and loses no message by it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::amqp::Value;
use crate::amqp::tests::peer::DeliveryOutcome;
use crate::amqp::tests::peer::Performative;
use crate::amqp::tests::peer::Role;
use crate::amqp::tests::peer::Transfer;
use crate::engine::Queue;
use crate::message::Message;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::holds::LockUuid;
use crate::service_bus::tests::bare::Bare;
use crate::service_bus::tests::bare::Fixture;
use crate::service_bus::tests::bare::copying;
use crate::service_bus::tests::bare::credit;
use crate::service_bus::tests::bare::deleting;
use crate::service_bus::tests::bare::drain;
use crate::service_bus::tests::bare::ends;
use crate::service_bus::tests::bare::is_drained;
use crate::service_bus::tests::bare::receiver;
use crate::service_bus::tests::bare::request;
use crate::service_bus::tests::bare::sections;
use crate::service_bus::tests::bare::transfer;
use crate::testing::ManualClock;

const LOCK: Duration = Duration::from_secs(3);
const HANDLING: Duration = Duration::from_millis(400);
const COUNT: usize = 20;

struct Stage {
    fixture: Fixture,
    clock: ManualClock,
    queue: Queue,
}

impl Stage {
    /// A queue with twenty messages.
    async fn new() -> Stage {
        Stage::ordered(Order::None).await
    }

    async fn ordered(order: Order) -> Stage {
        let (engine, clock) = crate::testing::engine().await.unwrap();
        let fixture = Fixture::by(engine, Arc::new(clock.clone())).await;
        let options = QueueOptions { order, lock: LOCK, ..QueueOptions::default() };
        let queue = fixture.client().create_queue("q", options).await.unwrap();
        for number in 0..COUNT {
            queue.send(Message::new(number.to_string())).await.unwrap();
        }
        Stage { fixture, clock, queue }
    }

    async fn receiver(&self, address: &str) -> Buffering {
        let mut bare = Bare::connect(&self.fixture).await;
        bare.attach_receiver(0, address).await;
        Buffering {
            bare,
            buffer: VecDeque::new(),
            received: 0,
            completed: 0,
            losses_max: 0,
            last_token: Value::Null,
        }
    }
}

/// A client that buffers what it is sent, and handles one after the other.
struct Buffering {
    bare: Bare,
    buffer: VecDeque<u32>,
    received: u32,
    completed: usize,
    /// How often a message was lost that it has received.
    losses_max: u32,
    /// The lock token of what it received last.
    last_token: Value,
}

impl Buffering {
    async fn gives_credit(&mut self, given: u32) {
        self.bare.says([credit(0, self.received, given)]).await;
    }

    /// Buffers what was heard, and says how the last was settled.
    fn takes(&mut self, frames: &[Performative]) -> Option<DeliveryOutcome> {
        for frames in frames {
            if let Some(message) = sections(frames) {
                if let Performative::Transfer(Transfer { delivery_tag: Some(tag), .. }, _) = frames {
                    self.last_token = Value::Uuid(LockUuid(tag[..].try_into().unwrap()).tag());
                }
                self.buffer.push_back(self.received);
                self.received += 1;
                let header = message.header().unwrap();
                self.losses_max = self.losses_max.max(header.delivery_count.unwrap_or_default());
            }
        }
        match frames.last() {
            Some(Performative::Disposition(claims)) if claims.role == Role::Sender => claims.state.clone(),
            _ => None,
        }
    }

    async fn buffers(&mut self, count: usize) {
        while self.buffer.len() < count {
            let frames = self.bare.next_frame().await.expect("the endpoint sends");
            self.takes(&[frames]);
        }
    }

    /// Handles the first in its buffer, and says whether that was in time.
    async fn handles_one(&mut self, clock: &ManualClock) -> bool {
        self.buffers(1).await;
        let delivery = self.buffer.pop_front().unwrap();
        clock.advance(HANDLING);
        self.bare.says([ends(delivery, delivery, false, DeliveryOutcome::Accepted)]).await;
        let is_answer = |frames: &Performative| matches!(frames, Performative::Disposition(_));
        let frames = self.bare.frames_until(is_answer).await;
        let is_in_time = matches!(self.takes(&frames), Some(DeliveryOutcome::Accepted));
        self.completed += usize::from(is_in_time);
        is_in_time
    }
}

#[tokio::test]
async fn twenty_messages_in_a_buffer_of_fifty_are_all_completed_although_their_locks_are_short() {
    let stage = Stage::new().await;
    let mut slow = stage.receiver("q").await;
    slow.gives_credit(50).await;
    slow.buffers(COUNT).await;
    let mut handled = 0;
    while slow.completed < COUNT {
        handled += 1;
        assert!(handled < 3 * COUNT, "{} completed", slow.completed);
        slow.handles_one(&stage.clock).await;
        slow.gives_credit(50).await;
    }
    let counts = stage.queue.view().await.unwrap().counts;
    assert_eq!((counts.completed, counts.dead_lettered), (COUNT as u64, 0), "{counts:?}");
    assert!(slow.losses_max <= 2, "a message was lost {} times", slow.losses_max);
    let reading = stage.fixture.meters.read();
    assert_eq!((reading.windows, reading.lost_in_buffers >= 12), (1, true), "{reading:?}");
}

/// Seven of twenty messages are handled in time, and the others lose their locks in the buffer.
async fn lose_thirteen(stage: &Stage, slow: &mut Buffering) {
    slow.gives_credit(50).await;
    slow.buffers(COUNT).await;
    for _ in 0..7 {
        assert!(slow.handles_one(&stage.clock).await);
    }
    assert!(!slow.handles_one(&stage.clock).await);
}

#[tokio::test]
async fn what_a_window_holds_back_is_there_for_others_at_once() {
    let stage = Stage::new().await;
    let (mut slow, mut other) = (stage.receiver("q").await, stage.receiver("q").await);
    lose_thirteen(&stage, &mut slow).await;
    // Time stands still.
    other.gives_credit(50).await;
    other.buffers(13).await;
    assert_eq!(other.losses_max, 1);
    assert!(slow.buffer.len() == 12, "it was sent {} again", slow.buffer.len() - 12);
}

#[tokio::test]
async fn what_another_connection_says_by_token_makes_room_too() {
    let stage = Stage::new().await;
    let mut slow = stage.receiver("q").await;
    lose_thirteen(&stage, &mut slow).await;
    slow.gives_credit(30).await;
    let mut other = Bare::connect(&stage.fixture).await;
    other.attach_receiver(2, "q/$management").await;
    other.attach_sender(1, "q/$management").await;
    let asked = vec![
        (Value::string("disposition-status"), Value::from("completed")),
        (Value::string("lock-tokens"), Value::Array(vec![slow.last_token.clone()])),
    ];
    let settling = request("com.microsoft:update-disposition", asked);
    // Refused, because its lock was lost; but everything before it was taken out of the buffer before.
    other.says([transfer(1, 0, false, &settling)]).await;
    slow.buffers(13).await;
}

#[tokio::test]
async fn a_drain_is_answered_at_once_by_what_a_window_holds_back() {
    let stage = Stage::new().await;
    let mut slow = stage.receiver("q").await;
    lose_thirteen(&stage, &mut slow).await;
    assert_eq!(stage.queue.view().await.unwrap().counts.completed, 7);
    slow.bare.says([drain(0, slow.received, 30)]).await;
    let frames = slow.bare.frames_until(is_drained).await;
    slow.takes(&frames);
    assert_eq!(slow.buffer.len(), 12, "nothing is sent into a buffer in which it would be lost again");
    slow.gives_credit(30).await;
    while stage.fixture.meters.full_windows.of(stage.queue.name()).is_none() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_new_link_starts_with_the_window_of_its_queue() {
    let stage = Stage::new().await;
    let mut slow = stage.receiver("q").await;
    lose_thirteen(&stage, &mut slow).await;
    drop(slow);
    let mut next = stage.receiver("q").await;
    next.gives_credit(50).await;
    // Half of the seven that were settled in time.
    next.buffers(3).await;
    next.bare.says([drain(0, next.received, 47)]).await;
    let frames = next.bare.frames_until(is_drained).await;
    next.takes(&frames);
    assert_eq!(next.buffer.len(), 3);
}

#[tokio::test]
async fn dead_letters_whose_locks_run_out_in_a_buffer_are_all_completed() {
    let stage = Stage::new().await;
    for mut delivery in stage.queue.receive_many(COUNT, Duration::ZERO).await.unwrap() {
        delivery.dead_letter("bad", "").await.unwrap();
    }
    let mut slow = stage.receiver("q/$deadletterqueue").await;
    slow.gives_credit(COUNT as u32).await;
    slow.buffers(COUNT).await;
    for _ in 0..COUNT {
        slow.handles_one(&stage.clock).await;
    }
    assert_eq!(slow.completed, 7);
    slow.gives_credit(COUNT as u32).await;
    slow.buffers(1).await;
    while slow.completed < COUNT {
        assert!(slow.buffer.len() <= 7, "it is sent {} ahead", slow.buffer.len());
        assert!(slow.handles_one(&stage.clock).await);
        slow.gives_credit(COUNT as u32).await;
    }
    assert_eq!(stage.queue.view().await.unwrap().counts.dead_lettered, 0);
    assert_eq!(stage.fixture.meters.read().windows, 1);
}

#[tokio::test]
async fn sessions_browsers_and_receive_and_delete_have_no_window() {
    let stage = Stage::ordered(Order::Arrival).await;
    let mut slow = stage.receiver("q").await;
    lose_thirteen(&stage, &mut slow).await;
    let mut session = Bare::connect(&stage.fixture).await;
    session.attach_session(0, "q", "s").await;
    for number in 0..COUNT {
        let message = Message::new(format!("s{number}")).workflow("s");
        stage.queue.send(message).await.unwrap();
    }
    // Time stands still, and the queue's last window has room for fewer.
    session.says([credit(0, 0, 50)]).await;
    assert_eq!(session.bodies(COUNT).await.last().unwrap(), "s19");
    let mut browser = Bare::connect(&stage.fixture).await;
    browser.attach_with(copying(receiver(0, "q"))).await;
    browser.says([credit(0, 0, 50)]).await;
    assert_eq!(browser.bodies(13 + COUNT).await.last().unwrap(), "s19");
    let mut deletes = Bare::connect(&stage.fixture).await;
    deletes.attach_with(deleting(receiver(0, "q"))).await;
    deletes.says([credit(0, 0, 50)]).await;
    assert_eq!(deletes.bodies(13).await.len(), 13);
    assert_eq!(stage.fixture.meters.read().windows, 1, "only the slow receiver has one");
}
