//! Dead letters are received, locked and settled as messages are, beside their workflow.

use std::time::Duration;

use seriatim::Abandon;
use seriatim::Completion;
use seriatim::Delivery;
use seriatim::Message;
use seriatim::Order;
use seriatim::Outcome;
use seriatim::QueueOptions;
use seriatim::SequenceNumber;
use seriatim::error::ReceiveRefusal;
use seriatim::error::SettleRefusal;
use seriatim::message::Properties;
use seriatim::message::PropertyValue;

use crate::promises::fixture::FileFixture;
use crate::promises::fixture::Fixture;
use crate::promises::fixture::body;
use crate::promises::fixture::seconds;

const LOCK: Duration = Duration::from_secs(10);

impl Fixture {
    async fn with_dead_letters(workflows: &[&str]) -> Fixture {
        let fixture = Fixture::new(QueueOptions::default().lock(LOCK)).await;
        for workflow in workflows {
            fixture.send(workflow, workflow).await;
            fixture.must().await.dead_letter("bad", "why").await.expect("it is held");
        }
        fixture
    }

    async fn dead(&self) -> Option<Delivery> {
        self.queue.receive_dead_letters(1, Duration::ZERO).await.expect("the queue exists").pop()
    }

    async fn must_dead(&self) -> Delivery {
        self.dead().await.expect("a dead letter is free")
    }
}

fn lost(answer: Result<impl Sized, seriatim::error::SettleError>) -> bool {
    answer.err().is_some_and(|error| error.refusal() == Some(&SettleRefusal::LockLost))
}

#[tokio::test]
async fn a_dead_letter_is_handed_out_once_and_gone_when_completed() {
    let fixture = Fixture::with_dead_letters(&["w"]).await;
    let mut delivery = fixture.must_dead().await;
    let why = delivery.message().dead_letter.clone().unwrap();
    assert_eq!((why.reason.as_str(), why.description.as_str()), ("bad", "why"));
    assert_eq!((body(&delivery).as_str(), delivery.message().delivery_count), ("w", 2));
    assert!(fixture.dead().await.is_none(), "somebody has it");
    let seen = fixture.queue.dead_letters(None, 1).await.unwrap().pop().unwrap();
    assert_eq!(seen.locked_until, Some(delivery.locked_until()));
    delivery.complete().await.unwrap();
    delivery.complete().await.expect("the same again is answered as it was");
    let counts = fixture.counts().await;
    assert_eq!((counts.dead_lettered, counts.completed), (0, 1));
}

#[tokio::test]
async fn a_dead_letter_whose_lock_ran_out_comes_again_and_is_counted() {
    let fixture = Fixture::with_dead_letters(&["w"]).await;
    let mut first = fixture.must_dead().await;
    fixture.clock.advance(seconds(9));
    first.renew().await.unwrap();
    fixture.clock.advance(seconds(9));
    assert!(fixture.dead().await.is_none(), "it was renewed");
    fixture.clock.advance(seconds(1));
    let mut second = fixture.must_dead().await;
    assert_eq!(second.message().delivery_count, 3);
    assert_eq!(second.message().attempts.last().unwrap().reason, "the lock was lost");
    assert!(lost(first.complete().await) && lost(first.renew().await));
    second.complete().await.unwrap();
}

#[tokio::test]
async fn a_dead_letter_given_back_is_counted_unless_it_was_released() {
    let fixture = Fixture::with_dead_letters(&["w"]).await;
    fixture.must_dead().await.release().await.unwrap();
    assert_eq!(fixture.must_dead().await.message().delivery_count, 2, "dropped, it has failed");
    fixture.must_dead().await.abandon().await.unwrap();
    assert_eq!(fixture.must_dead().await.message().delivery_count, 4);
}

#[tokio::test]
async fn a_dead_letter_is_handed_out_however_often_and_never_expires() {
    let options = QueueOptions::default().delivery_count_max(1).time_to_live(seconds(60));
    let fixture = Fixture::new(options).await;
    fixture.send("w", "a").await;
    fixture.must().await.abandon().await.unwrap();
    fixture.clock.advance(seconds(3_600));
    for _ in 0..20 {
        fixture.must_dead().await.abandon().await.unwrap();
    }
    assert_eq!(fixture.must_dead().await.message().expires_at, None);
}

#[tokio::test]
async fn a_dead_letter_set_aside_is_received_by_number_only_also_after_a_restart() {
    let files = FileFixture::new();
    let (engine, queue) = files.open().await;
    let number = queue.send(Message::new("a").workflow("w")).await.unwrap().sequence_number().unwrap();
    queue.receive(Duration::ZERO).await.unwrap().unwrap().dead_letter("bad", "").await.unwrap();
    let mut delivery = queue.receive_dead_letters(1, Duration::ZERO).await.unwrap().pop().unwrap();
    delivery.defer().await.unwrap();
    engine.close().await;
    let (_engine, queue) = files.open().await;
    assert!(queue.receive_dead_letters(1, Duration::ZERO).await.unwrap().is_empty());
    assert!(queue.dead_letters(None, 1).await.unwrap()[0].dead_letter.deferred);
    for numbers in [[number, SequenceNumber::new(99)], [SequenceNumber::new(99), number]] {
        let refused = queue.receive_deferred_dead_letters(&numbers).await.err().unwrap();
        assert_eq!(
            refused.refusal(),
            Some(&ReceiveRefusal::MessageNotFound(SequenceNumber::new(99))),
            "all or none"
        );
    }
    let mut again = queue.receive_deferred_dead_letters(&[number, number]).await.unwrap();
    assert_eq!((again.len(), again[0].message().delivery_count), (1, 3));
    assert!(queue.receive_deferred_dead_letters(&[number]).await.is_err(), "somebody has it");
    again[0].abandon().await.unwrap();
    assert!(queue.receive_dead_letters(1, Duration::ZERO).await.unwrap().is_empty(), "it stays set aside");
    queue.receive_deferred_dead_letters(&[number]).await.unwrap()[0].complete().await.unwrap();
    assert_eq!(queue.view().await.unwrap().counts.completed, 1);
}

#[tokio::test]
async fn a_dead_letter_of_a_message_without_workflow_is_handed_out_once_its_holder_lets_go() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.accept(Message::new("a")).await;
    let taken = fixture.queue.accept_next_workflow(Duration::ZERO).await.unwrap().unwrap();
    taken.receive(1, Duration::ZERO).await.unwrap()[0].dead_letter("bad", "").await.unwrap();
    assert!(fixture.dead().await.is_none(), "its holder still has it");
    taken.close().await.unwrap();
    fixture.must_dead().await.complete().await.unwrap();
}

#[tokio::test]
async fn a_delivery_of_a_dead_letter_is_counted_when_the_process_dies_and_its_token_is_void() {
    let files = FileFixture::new();
    let (engine, queue) = files.open().await;
    queue.send(Message::new("a").workflow("w")).await.unwrap();
    queue.receive(Duration::ZERO).await.unwrap().unwrap().dead_letter("bad", "").await.unwrap();
    let id = queue.receive_dead_letters(1, Duration::ZERO).await.unwrap().pop().unwrap().keep();
    engine.close().await;
    let (_engine, queue) = files.open().await;
    assert!(lost(queue.settler().complete(id, Completion::new()).await));
    let again = queue.receive_dead_letters(1, Duration::ZERO).await.unwrap().pop().unwrap();
    assert_eq!(again.message().delivery_count, 3);
}

#[tokio::test]
async fn who_waits_for_a_dead_letter_is_handed_a_new_one_and_one_that_comes_back() {
    let fixture = Fixture::with_dead_letters(&[]).await;
    for by_release in [false, true] {
        let held = if by_release { Some(fixture.must_dead().await) } else { None };
        let queue = fixture.queue.clone();
        let waiting = tokio::spawn(async move { queue.receive_dead_letters(1, seconds(3_600)).await });
        match held {
            Some(mut held) => held.release().await.unwrap(),
            None => {
                fixture.send("w", "a").await;
                fixture.must().await.dead_letter("bad", "").await.unwrap();
            }
        }
        waiting.await.unwrap().unwrap().pop().unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn what_is_sent_with_the_completion_of_a_dead_letter_is_one_transaction_with_it() {
    let fixture = Fixture::with_dead_letters(&["w"]).await;
    let mut delivery = fixture.must_dead().await;
    let elsewhere = Completion::new().send("absent", Message::new("mended").workflow("w"));
    for refused in [elsewhere, Completion::new().state("s")] {
        assert!(delivery.complete_with(refused).await.is_err());
        assert_eq!(fixture.counts().await.dead_lettered, 1, "it is still there");
    }
    let again = Completion::new().send("q", Message::new("mended").workflow("w"));
    assert_eq!(delivery.complete_with(again).await.unwrap().len(), 1);
    assert_eq!(fixture.drain().await, ["mended"]);
    assert_eq!(fixture.counts().await.dead_lettered, 0);
}

#[tokio::test]
async fn a_dead_letter_that_somebody_has_keeps_nobody_from_its_workflow() {
    let fixture = Fixture::with_dead_letters(&["w"]).await;
    let mut held = fixture.must_dead().await;
    fixture.send("w", "next").await;
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    let mut next = taken.receive(1, Duration::ZERO).await.unwrap();
    held.complete().await.unwrap();
    next[0].complete().await.unwrap();
}

#[tokio::test]
async fn who_redrives_or_purges_a_dead_letter_ends_its_lock() {
    for order in [Order::Arrival, Order::None] {
        let fixture = Fixture::new(QueueOptions::default().order(order)).await;
        for purges in [false, true] {
            let number = fixture.send("w", "a").await;
            fixture.must().await.dead_letter("bad", "").await.unwrap();
            fixture.must_dead().await.abandon().await.unwrap();
            let mut held = fixture.must_dead().await;
            match purges {
                true => assert!(fixture.queue.purge_dead_letter(number).await.unwrap()),
                false => drop(fixture.queue.redrive(number).await.unwrap()),
            }
            assert!(lost(held.complete().await) && lost(held.release().await));
            assert!(fixture.dead().await.is_none());
            let expected: &[&str] = if purges { &[] } else { &["a"] };
            assert_eq!(fixture.drain().await, expected, "{order:?}");
        }
    }
}

#[tokio::test]
async fn what_was_received_as_a_dead_letter_and_put_back_in_its_place_has_no_attempt_less() {
    let options = QueueOptions::default().order(Order::POSITION).delivery_count_max(3);
    let fixture = Fixture::new(options).await;
    let number = fixture.send_at("w", 1).await;
    fixture.must().await.dead_letter("bad", "").await.unwrap();
    for _ in 0..5 {
        fixture.must_dead().await.abandon().await.unwrap();
    }
    fixture.queue.workflow("w").unwrap().hold("look").await.unwrap();
    fixture.queue.redrive(number).await.unwrap();
    fixture.queue.workflow("w").unwrap().resume().await.unwrap();
    let again = fixture.next().await.map(|again| again.message().delivery_count);
    assert!(again.is_none_or(|count| count == 2), "{again:?}");
}

#[tokio::test]
async fn a_dead_letter_is_not_dead_lettered_again_and_stays_held() {
    let fixture = Fixture::with_dead_letters(&["w"]).await;
    let mut delivery = fixture.must_dead().await;
    let refused = delivery.dead_letter("worse", "").await.unwrap_err();
    let number = delivery.sequence_number();
    assert_eq!(refused.refusal(), Some(&SettleRefusal::AlreadyDeadLettered(number)));
    delivery.complete().await.unwrap();
}

#[tokio::test]
async fn a_free_dead_letter_is_found_behind_thousands_that_are_locked_or_set_aside() {
    let fixture = Fixture::with_dead_letters(&[]).await;
    let many = 2_500;
    let message = |at: usize| Message::new("a").workflow(format!("w{at}"));
    for at in (0..=many).step_by(500) {
        let batch: Vec<Message> = (at..(at + 500).min(many + 1)).map(message).collect();
        fixture.queue.send_batch(batch).await.unwrap();
    }
    while let Some(mut delivery) = fixture.next().await {
        delivery.dead_letter("bad", "").await.unwrap();
    }
    let mut held = Vec::new();
    while held.len() < many {
        held.extend(fixture.queue.receive_dead_letters(500, Duration::ZERO).await.unwrap());
    }
    for delivery in held.iter_mut().step_by(2) {
        delivery.defer().await.unwrap();
    }
    // The first of all that comes back is before the place where the search had arrived.
    held[1].release().await.unwrap();
    let found = fixture.queue.receive_dead_letters(2, seconds(1)).await.unwrap();
    assert_eq!(found[0].sequence_number(), held[1].sequence_number());
    let mut last = fixture.queue.receive_dead_letters(2, seconds(1)).await.unwrap();
    assert_eq!(last.len(), 1, "the last one of all is found behind the others");
    last[0].complete().await.unwrap();
}

#[tokio::test]
async fn properties_that_the_abandon_of_a_dead_letter_sets_stay_with_it() {
    let fixture = Fixture::with_dead_letters(&["w"]).await;
    fixture.must_dead().await.abandon_with(Abandon::now().property("looked at", true)).await.unwrap();
    let again = fixture.must_dead().await;
    assert_eq!(again.message().headers.properties.get("looked at"), Some(&PropertyValue::Boolean(true)));
}

#[tokio::test]
async fn properties_that_are_set_with_any_end_by_id_stay_with_the_message() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let number = fixture.send("w", "a").await;
    let set = |name: &str| Properties::from([(name.to_owned(), PropertyValue::Boolean(true))]);
    let settler = fixture.queue.settler();
    let abandon = Outcome::Abandon(Abandon::now());
    settler.end_with(fixture.must().await.keep(), abandon, set("abandoned")).await.unwrap();
    settler.end_with(fixture.must().await.keep(), Outcome::Defer, set("deferred")).await.unwrap();
    let deferred = fixture.queue.receive_deferred(&[number]).await.unwrap().pop().unwrap();
    let dead = Outcome::DeadLetter { reason: "bad".to_owned(), description: String::new() };
    settler.end_with(deferred.keep(), dead, set("dead")).await.unwrap();
    let found = fixture.must_dead().await.message().headers.properties.clone();
    assert_eq!(found.keys().collect::<Vec<_>>(), ["abandoned", "dead", "deferred"]);
}
