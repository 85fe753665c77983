//! Dead letters, handed out.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::engine::Queue;
use crate::id::SequenceNumber;
use crate::message::Message;
use crate::queue::QueueOptions;
use crate::service_bus::dead_letter_queue::DeadLetterQueues;
use crate::service_bus::dead_letter_queue::LockedDeadLetter;
use crate::service_bus::dead_letter_queue::Return;
use crate::service_bus::refusal::condition;
use crate::testing::ManualClock;

const LOCK: Duration = Duration::from_secs(10);

struct Fixture {
    _engine: Engine,
    clock: ManualClock,
    queue: Queue,
    dead_letter_queues: Arc<DeadLetterQueues>,
}

impl Fixture {
    async fn new() -> Fixture {
        let (engine, clock) = crate::testing::engine().await.unwrap();
        let queue = engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
        let dead_letter_queues =
            Arc::new(DeadLetterQueues::new(engine.client().clone(), Arc::new(clock.clone())));
        Fixture { _engine: engine, clock, queue, dead_letter_queues }
    }

    async fn bury(&self, body: &'static str) -> SequenceNumber {
        self.queue.send(Message::new(body)).await.unwrap();
        let mut delivery = self.queue.receive(Duration::ZERO).await.unwrap().unwrap();
        delivery.dead_letter("bad", "").await.unwrap();
        delivery.sequence_number()
    }

    async fn take(&self) -> Vec<LockedDeadLetter> {
        self.dead_letter_queues
            .receive(&self.queue, LOCK, 10, Duration::ZERO, &CancellationToken::new())
            .await
            .unwrap()
    }

    async fn one(&self) -> LockedDeadLetter {
        self.take().await.pop().unwrap()
    }

    fn give_back(&self, dead_letter: &LockedDeadLetter, how: Return) {
        let number = dead_letter.view.sequence_number;
        self.dead_letter_queues.give_back(self.queue.name(), number, dead_letter.token, how).unwrap();
    }

    async fn stored(&self) -> u64 {
        self.queue.view().await.unwrap().counts.dead_lettered
    }
}

#[tokio::test]
async fn a_dead_letter_is_out_once_and_gone_when_completed() {
    let fixture = Fixture::new().await;
    let number = fixture.bury("a").await;
    let dead_letter = fixture.one().await;
    assert_eq!((dead_letter.view.body.as_ref(), dead_letter.failures), (&b"a"[..], 0));
    assert!(fixture.take().await.is_empty(), "somebody has it");
    fixture.dead_letter_queues.complete(&fixture.queue, number, dead_letter.token).await.unwrap();
    assert_eq!(fixture.stored().await, 0);
    let again =
        fixture.dead_letter_queues.complete(&fixture.queue, number, dead_letter.token).await.unwrap_err();
    assert_eq!(again.condition, condition::LOCK_LOST);
}

#[tokio::test]
async fn a_dead_letter_whose_lock_ran_out_comes_again_and_is_counted() {
    let fixture = Fixture::new().await;
    let number = fixture.bury("a").await;
    let first = fixture.one().await;
    let until = fixture.dead_letter_queues.renew(fixture.queue.name(), number, first.token, LOCK).unwrap();
    assert_eq!(until, first.locked_until);
    fixture.clock.advance(LOCK);
    let second = fixture.one().await;
    assert_eq!(second.failures, 1);
    let lost = fixture.dead_letter_queues.complete(&fixture.queue, number, first.token).await.unwrap_err();
    assert_eq!(lost.condition, condition::LOCK_LOST);
    fixture.dead_letter_queues.complete(&fixture.queue, number, second.token).await.unwrap();
}

#[tokio::test]
async fn a_dead_letter_given_back_is_counted_unless_it_was_released() {
    let fixture = Fixture::new().await;
    fixture.bury("a").await;
    for (how, failures) in [(Return::Released, 0), (Return::Abandoned, 0), (Return::Released, 1)] {
        let dead_letter = fixture.one().await;
        assert_eq!(dead_letter.failures, failures);
        fixture.give_back(&dead_letter, how);
    }
}

#[tokio::test]
async fn a_dead_letter_set_aside_is_received_by_number_only() {
    let fixture = Fixture::new().await;
    let number = fixture.bury("a").await;
    let dead_letter = fixture.one().await;
    fixture.give_back(&dead_letter, Return::Deferred);
    assert!(fixture.take().await.is_empty());
    let both = [number, SequenceNumber::new(99)];
    let refused =
        fixture.dead_letter_queues.receive_deferred(&fixture.queue, LOCK, &both).await.err().unwrap();
    assert_eq!(refused.condition, condition::MESSAGE_NOT_FOUND);
    let received =
        fixture.dead_letter_queues.receive_deferred(&fixture.queue, LOCK, &[number]).await.unwrap();
    fixture.dead_letter_queues.complete(&fixture.queue, number, received[0].token).await.unwrap();
    assert_eq!(fixture.stored().await, 0);
}

#[tokio::test]
async fn who_waits_for_dead_letters_hears_of_a_new_one() {
    let fixture = Fixture::new().await;
    let (dead_letter_queues, queue) = (fixture.dead_letter_queues.clone(), fixture.queue.clone());
    let waiting = tokio::spawn(async move {
        dead_letter_queues
            .receive(&queue, LOCK, 1, Duration::from_secs(3_600), &CancellationToken::new())
            .await
    });
    fixture.bury("a").await;
    assert_eq!(waiting.await.unwrap().unwrap().len(), 1);
}
