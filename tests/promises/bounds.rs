//! What is done in steps is done whole, however much it is; and what is kept for a while is the newest.

use seriatim::Abandon;
use seriatim::Message;
use seriatim::QueueOptions;
use seriatim::SequenceNumber;
use seriatim::limits;
use seriatim::queue::ExhaustedPolicy;
use seriatim::view::Counts;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::seconds;

/// More than two steps of any sweep, and more than one batch.
const MANY: usize = 2 * limits::SWEEP_MAX + 100;

/// No sweep takes as many turns.
const TURNS_MAX: usize = 1_000;

impl Fixture {
    async fn send_many(&self, workflow: &str, more: impl Fn(Message) -> Message) {
        self.send_all((0..MANY).map(|_| more(Message::new("m").workflow(workflow)))).await;
    }

    async fn send_all(&self, messages: impl Iterator<Item = Message>) {
        let messages: Vec<Message> = messages.collect();
        for batch in messages.chunks(limits::SEND_BATCH_MAX) {
            self.queue.send_batch(batch.to_vec()).await.expect("they are accepted");
        }
    }

    /// Looks until something is so: with each look the engine goes on with what it does in steps.
    async fn until(&self, what: &str, is_so: impl Fn(&Counts) -> bool) {
        for _ in 0..TURNS_MAX {
            if is_so(&self.counts().await) {
                return;
            }
        }
        panic!("{what} never: {:?}", self.counts().await);
    }
}

#[tokio::test]
async fn a_purge_of_a_workflow_leaves_nothing_of_it_however_much_it_has() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("other", "stays").await;
    fixture.send_many("w", |message| message).await;
    let workflow = fixture.queue.workflow("w").unwrap();
    assert_eq!(workflow.purge().await.unwrap(), MANY as u64);
    let counts = fixture.counts().await;
    assert_eq!((counts.stored(), counts.purged), (1, MANY as u64));
    assert_eq!(fixture.queue.peek(SequenceNumber::new(0), 9).await.unwrap().len(), 1);
    assert_eq!(fixture.drain().await, ["stays"]);
}

#[tokio::test]
async fn a_purge_of_a_queue_leaves_nothing_however_much_it_has() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send_many("w", |message| message).await;
    fixture.send_many("v", |message| message).await;
    assert_eq!(fixture.queue.purge().await.unwrap(), 2 * MANY as u64);
    assert_eq!(fixture.counts().await.stored(), 0);
}

#[tokio::test]
async fn every_message_expires_and_every_dead_letter_is_purged_however_many_there_are() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send_many("w", |message| message.time_to_live(seconds(1))).await;
    fixture.clock.advance(seconds(2));
    fixture.until("all have expired", |counts| counts.dead_lettered == MANY as u64).await;
    assert_eq!(fixture.queue.purge_dead_letters().await.unwrap(), MANY as u64);
    assert_eq!(fixture.counts().await.stored(), 0);
}

#[tokio::test]
async fn who_does_not_wait_gets_what_stands_behind_expired_messages_however_many_these_are() {
    for many in (1_600..3_000).step_by(200) {
        let fixture = Fixture::new(QueueOptions::default()).await;
        let short = |number: usize| Message::new("m").workflow(number.to_string()).time_to_live(seconds(1));
        fixture.send_all((0..many).map(short)).await;
        fixture.send("w", "lives").await;
        fixture.clock.advance(seconds(2));
        assert_eq!(fixture.drain().await, ["lives"], "behind {many}");
    }
}

#[tokio::test]
async fn a_quarantine_takes_all_of_a_workflow_and_a_redrive_puts_all_of_it_back() {
    let exhausted = Some(ExhaustedPolicy::Quarantine);
    let fixture = Fixture::new(QueueOptions::default().delivery_count_max(1).exhausted(exhausted)).await;
    fixture.send_many("w", |message| message).await;
    fixture.must().await.abandon().await.unwrap();
    fixture.until("all are dead letters", |counts| counts.dead_lettered == MANY as u64).await;
    fixture.queue.workflow("w").unwrap().resume_and_redrive().await.unwrap();
    fixture.until("all are back", |counts| counts.ready == MANY as u64).await;
    assert!(fixture.next().await.is_some(), "it goes on");
}

#[tokio::test]
async fn a_message_keeps_its_last_attempts_and_drops_the_oldest() {
    let fixture = Fixture::new(QueueOptions::default().delivery_count_max(20)).await;
    let number = fixture.send("w", "m").await;
    let failures = limits::ATTEMPTS_KEPT as u32 + 3;
    for attempt in 1..=failures {
        let abandon = Abandon::now().reason(format!("failure {attempt}"));
        fixture.must().await.abandon_with(abandon).await.unwrap();
    }
    let shown = fixture.queue.peek(number, 1).await.unwrap().remove(0);
    let kept: Vec<(u32, String)> =
        shown.attempts.into_iter().map(|attempt| (attempt.delivery_count, attempt.reason)).collect();
    let newest: Vec<(u32, String)> =
        (4..=failures).map(|attempt| (attempt, format!("failure {attempt}"))).collect();
    assert_eq!(kept, newest);
}

#[tokio::test]
async fn a_queue_with_many_messages_is_deleted_in_slices_and_others_are_served_between() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send_many("w", |message| message).await;
    let client = fixture.engine.client();
    let before = client.commit_stats().commits;
    client.delete_queue("q").await.unwrap();
    // Between two commits whoever waits is served.
    let commits = client.commit_stats().commits - before;
    assert!(commits > MANY as u64 / limits::SWEEP_MAX as u64, "in {commits} commits");
    let queue = client.create_queue("q", QueueOptions::default()).await.unwrap();
    assert_eq!(queue.view().await.unwrap().counts.accepted, 0);
}

#[tokio::test]
async fn a_holder_that_does_not_wait_gets_what_stands_behind_expired_messages_of_its_workflow() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let short = |_| Message::new("m").workflow("w").time_to_live(seconds(1));
    fixture.send_all((0..3_000).map(short)).await;
    fixture.send("w", "lives").await;
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    fixture.clock.advance(seconds(2));
    let handed = taken.receive(10, seconds(0)).await.unwrap();
    assert_eq!(handed.len(), 1, "behind what has expired");
}
