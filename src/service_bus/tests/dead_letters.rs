//! Dead letters, handed out.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::engine::Queue;
use crate::id::SequenceNumber;
use crate::message::Message;
use crate::queue::QueueOptions;
use crate::service_bus::dead::Letter;
use crate::service_bus::dead::Return;
use crate::service_bus::dead::Shelves;
use crate::service_bus::refusal::condition;
use crate::testing::ManualClock;

const LOCK: Duration = Duration::from_secs(10);

struct House {
    _engine: Engine,
    clock: ManualClock,
    queue: Queue,
    shelves: Arc<Shelves>,
}

impl House {
    async fn new() -> House {
        let (engine, clock) = crate::testing::engine().await.unwrap();
        let queue = engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
        let shelves = Arc::new(Shelves::new(engine.client().clone(), Arc::new(clock.clone())));
        House { _engine: engine, clock, queue, shelves }
    }

    async fn bury(&self, body: &'static str) -> SequenceNumber {
        self.queue.send(Message::new(body)).await.unwrap();
        let mut delivery = self.queue.receive(Duration::ZERO).await.unwrap().unwrap();
        delivery.dead_letter("bad", "").await.unwrap();
        delivery.sequence_number()
    }

    async fn take(&self) -> Vec<Letter> {
        self.shelves.receive(&self.queue, LOCK, 10, Duration::ZERO, &CancellationToken::new()).await.unwrap()
    }

    async fn one(&self) -> Letter {
        self.take().await.pop().unwrap()
    }

    fn give_back(&self, letter: &Letter, how: Return) {
        let number = letter.view.sequence_number;
        self.shelves.give_back(self.queue.name(), number, letter.token, how).unwrap();
    }

    async fn stored(&self) -> u64 {
        self.queue.view().await.unwrap().counts.dead_lettered
    }
}

#[tokio::test]
async fn a_dead_letter_is_out_once_and_gone_when_completed() {
    let house = House::new().await;
    let number = house.bury("a").await;
    let letter = house.one().await;
    assert_eq!((letter.view.body.as_ref(), letter.failures), (&b"a"[..], 0));
    assert!(house.take().await.is_empty(), "somebody has it");
    house.shelves.complete(&house.queue, number, letter.token).await.unwrap();
    assert_eq!(house.stored().await, 0);
    let again = house.shelves.complete(&house.queue, number, letter.token).await.unwrap_err();
    assert_eq!(again.condition, condition::LOCK_LOST);
}

#[tokio::test]
async fn a_dead_letter_whose_lock_ran_out_comes_again_and_is_counted() {
    let house = House::new().await;
    let number = house.bury("a").await;
    let first = house.one().await;
    let until = house.shelves.renew(house.queue.name(), number, first.token, LOCK).unwrap();
    assert_eq!(until, first.locked_until);
    house.clock.advance(LOCK);
    let second = house.one().await;
    assert_eq!(second.failures, 1);
    let lost = house.shelves.complete(&house.queue, number, first.token).await.unwrap_err();
    assert_eq!(lost.condition, condition::LOCK_LOST);
    house.shelves.complete(&house.queue, number, second.token).await.unwrap();
}

#[tokio::test]
async fn a_dead_letter_given_back_is_counted_unless_it_was_released() {
    let house = House::new().await;
    house.bury("a").await;
    for (how, failures) in [(Return::Released, 0), (Return::Abandoned, 0), (Return::Released, 1)] {
        let letter = house.one().await;
        assert_eq!(letter.failures, failures);
        house.give_back(&letter, how);
    }
}

#[tokio::test]
async fn a_dead_letter_set_aside_is_received_by_number_only() {
    let house = House::new().await;
    let number = house.bury("a").await;
    let letter = house.one().await;
    house.give_back(&letter, Return::Deferred);
    assert!(house.take().await.is_empty());
    let both = [number, SequenceNumber::new(99)];
    let refused = house.shelves.receive_deferred(&house.queue, LOCK, &both).await.err().unwrap();
    assert_eq!(refused.condition, condition::MESSAGE_NOT_FOUND);
    let received = house.shelves.receive_deferred(&house.queue, LOCK, &[number]).await.unwrap();
    house.shelves.complete(&house.queue, number, received[0].token).await.unwrap();
    assert_eq!(house.stored().await, 0);
}

#[tokio::test]
async fn who_waits_for_dead_letters_hears_of_a_new_one() {
    let house = House::new().await;
    let (shelves, queue) = (house.shelves.clone(), house.queue.clone());
    let waiting = tokio::spawn(async move {
        shelves.receive(&queue, LOCK, 1, Duration::from_secs(3_600), &CancellationToken::new()).await
    });
    house.bury("a").await;
    assert_eq!(waiting.await.unwrap().unwrap().len(), 1);
}
