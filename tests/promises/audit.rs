//! The audit: what operators do is written down with who did it, why, and what came of it.

use std::time::Duration;

use bytes::Bytes;
use seriatim::Actor;
use seriatim::Client;
use seriatim::Message;
use seriatim::QueueOptions;
use seriatim::SequenceNumber;
use seriatim::limits;
use seriatim::queue::ExhaustedPolicy;
use seriatim::view::AuditEntry;
use seriatim::view::AuditVerb;

use crate::promises::fixture::FileFixture;
use crate::promises::fixture::Fixture;
use crate::promises::fixture::seconds;

fn ada() -> Actor {
    Actor::new("ada").and_then(|actor| actor.because("the customer called")).expect("a good actor")
}

async fn audit(client: &Client) -> Vec<AuditEntry> {
    client.audit(0, limits::PAGE_MAX).await.expect("the engine is open")
}

#[tokio::test]
async fn every_verb_of_an_operator_is_written_down_with_who_why_and_what() {
    let exhausted = Some(ExhaustedPolicy::Hold);
    let options = QueueOptions::by_position().delivery_count_max(1).exhausted(exhausted);
    let fixture = Fixture::new(options.clone()).await;
    let client = fixture.engine.client().acting_as(ada());
    let queue = client.queue("q").unwrap();
    for position in [1, 2, 4] {
        fixture.send_at("w", position).await;
    }
    let workflow = queue.workflow("w").unwrap();
    let delivery = fixture.must().await;
    workflow.release_lock().await.unwrap(); // and so it is spent
    drop(delivery);
    workflow.retry_now().await.unwrap();
    workflow.hold("wait").await.unwrap();
    workflow.skip_head("broken").await.unwrap();
    workflow.resume_and_redrive().await.unwrap();
    workflow.hold("wait").await.unwrap();
    workflow.resume().await.unwrap();
    fixture.drain().await;
    workflow.skip_gap().await.unwrap();
    workflow.declare_void(5, 9).await.unwrap();
    workflow.set_state(Some(Bytes::from_static(b"secret"))).await.unwrap();
    fixture.must().await.dead_letter("bad", "").await.unwrap();
    queue.workflow("v").unwrap().purge().await.unwrap();
    let number = queue.dead_letters(None, 9).await.unwrap()[0].sequence_number;
    workflow.hold("wait").await.unwrap();
    queue.redrive(number).await.unwrap();
    queue.purge_dead_letters().await.unwrap();
    queue.purge().await.unwrap();
    client.create_queue("r", QueueOptions::default()).await.unwrap();
    client.change_queue("r", QueueOptions::default().lock(seconds(5))).await.unwrap();
    client.delete_queue("r").await.unwrap();
    let entries = audit(&client).await;
    let verbs: Vec<&str> = entries.iter().map(|entry| entry.verb.as_str()).collect();
    let expected = [
        "release_lock",
        "retry_now",
        "hold",
        "skip_head",
        "resume_and_redrive",
        "hold",
        "resume",
        "skip_gap",
        "declare_void",
        "set_state",
        "purge_workflow",
        "hold",
        "redrive",
        "purge_dead_letters",
        "purge_queue",
        "create_queue",
        "change_queue",
        "delete_queue",
    ];
    assert_eq!(verbs, expected);
    for (entry, number) in entries.iter().zip(1..) {
        assert_eq!((entry.number, entry.actor.as_str()), (number, "ada"));
        assert_eq!(
            (entry.reason.as_deref(), &entry.refusal),
            (Some("the customer called"), &None),
            "{entry:?}"
        );
    }
    let of = |verb: AuditVerb| entries.iter().find(|entry| entry.verb == verb).expect("it was done");
    assert_eq!(of(AuditVerb::RetryNow).sequence_number, Some(SequenceNumber::new(1)));
    assert_eq!(of(AuditVerb::SkipHead).sequence_number, Some(SequenceNumber::new(1)));
    assert_eq!(of(AuditVerb::SkipGap).positions, Some((3, 3)));
    assert_eq!(of(AuditVerb::DeclareVoid).positions, Some((5, 9)));
    assert_eq!(of(AuditVerb::Redrive).sequence_number, Some(number));
    assert_eq!(of(AuditVerb::Redrive).workflow_id.as_ref().map(|id| id.as_str()), Some("w"));
    assert_eq!(of(AuditVerb::PurgeWorkflow).workflow_id.as_ref().map(|id| id.as_str()), Some("v"));
    assert_eq!(of(AuditVerb::PurgeQueue).count, 1);
    assert!(!format!("{entries:?}").contains("secret"), "no content is written down");
}

#[tokio::test]
async fn what_was_refused_is_written_down_too_with_the_refusal() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let client = fixture.engine.client().acting_as(ada());
    let refused = client.queue("q").unwrap().workflow("w").unwrap().resume().await.unwrap_err();
    client.delete_queue("nowhere").await.unwrap_err();
    let entries = audit(&client).await;
    assert_eq!(entries[0].refusal, Some(refused.to_string()));
    assert_eq!((entries[0].count, entries[1].queue.as_str()), (0, "nowhere"));
    assert!(entries[1].refusal.is_some());
}

#[tokio::test]
async fn nobody_is_written_down_who_does_not_say_who_he_is_nor_who_only_sends_and_receives() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.queue.workflow("w").unwrap().hold("anonymous").await.unwrap();
    let queue = fixture.engine.client().acting_as(ada()).queue("q").unwrap();
    queue.send(Message::new("a").workflow("v")).await.unwrap();
    queue.receive(Duration::ZERO).await.unwrap().expect("it is ready").complete().await.unwrap();
    assert_eq!(audit(fixture.engine.client()).await, []);
}

#[tokio::test]
async fn a_purge_of_many_steps_is_one_entry() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    for _ in 0..3 {
        let many = (0..limits::SWEEP_MAX).map(|_| Message::new("m").workflow("w"));
        fixture.queue.send_batch(many).await.unwrap();
    }
    let client = fixture.engine.client().acting_as(ada());
    let purged = client.queue("q").unwrap().purge().await.unwrap();
    assert_eq!(purged, 3 * limits::SWEEP_MAX as u64);
    let again = client.queue("q").unwrap().purge().await.unwrap();
    let counts: Vec<u64> = audit(&client).await.iter().map(|entry| entry.count).collect();
    assert_eq!((counts, again), (vec![purged, 0], 0));
}

#[tokio::test]
async fn the_audit_outlives_queues_and_restarts_and_can_be_paged() {
    let fixture = FileFixture::new();
    let (engine, queue) = fixture.open().await;
    let client = engine.client().acting_as(ada());
    for workflow in ["a", "b", "c"] {
        client.queue("q").unwrap().workflow(workflow).unwrap().hold("").await.unwrap();
    }
    client.delete_queue("q").await.unwrap();
    engine.close().await;
    drop((client, queue));
    let (engine, _queue) = fixture.open().await;
    let page = engine.client().audit(1, 2).await.unwrap();
    assert_eq!(page.iter().map(|entry| entry.number).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(engine.client().audit(3, 2).await.unwrap()[0].verb, AuditVerb::DeleteQueue);
    assert_eq!(engine.client().audit(4, 2).await.unwrap(), []);
}
