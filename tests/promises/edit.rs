//! Editing a dead letter: it goes back with another body, and its original is kept.

use seriatim::Abandon;
use seriatim::Message;
use seriatim::Queue;
use seriatim::QueueOptions;
use seriatim::SequenceNumber;
use seriatim::delivery::EDITED;
use seriatim::delivery::Redriven;
use seriatim::error::OperateRefusal;
use seriatim::error::SendRefusal;
use seriatim::message::PropertyValue;
use seriatim::view::DeadLetterView;

use crate::promises::fixture::FileFixture;
use crate::promises::fixture::Fixture;
use crate::promises::fixture::refusal;

async fn dead_letters(queue: &Queue) -> Vec<DeadLetterView> {
    queue.dead_letters(None, 100).await.expect("the queue exists")
}

async fn body(queue: &Queue, number: SequenceNumber) -> String {
    let found = queue.peek(number, 1).await.expect("the queue exists").remove(0);
    assert_eq!(found.sequence_number, number);
    String::from_utf8(found.body.to_vec()).expect("the tests send text")
}

#[tokio::test]
async fn an_edited_dead_letter_returns_to_its_place_and_its_original_is_kept() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    let workflow = fixture.queue.workflow("w").unwrap();
    let number = fixture.send_at("w", 1).await;
    fixture.send_at("w", 2).await;
    workflow.hold("look").await.unwrap();
    workflow.skip_head("a broken body").await.unwrap();
    let before = fixture.counts().await;
    let redriven = fixture.queue.edit_and_redrive(number, "mended", None).await.unwrap();
    assert_eq!(redriven, Redriven::InPlace);
    let kept = dead_letters(&fixture.queue).await;
    assert_eq!((kept.len(), kept[0].dead_letter.reason.as_str()), (1, EDITED));
    let original = kept[0].sequence_number;
    assert!(kept[0].dead_letter.description.contains("a broken body"), "{kept:?}");
    assert_eq!(body(&fixture.queue, original).await, "1");
    assert_eq!(kept[0].workflow_id.as_ref().map(|id| id.as_str()), Some("w"));
    assert_eq!(fixture.counts().await.dead_lettered, before.dead_lettered);
    workflow.resume_and_redrive().await.unwrap();
    let mut first = fixture.must().await;
    let number_of = |number: SequenceNumber| PropertyValue::Integer(number.get().cast_signed());
    let message = first.message();
    assert_eq!((&message.body[..], message.sequence_number), (&b"mended"[..], number));
    assert_eq!(message.headers.properties.get("seriatim-original"), Some(&number_of(original)));
    first.complete().await.unwrap();
    assert_eq!(fixture.drain().await, ["2"], "the original does not come back with its workflow");
    assert_eq!(refusal(fixture.queue.redrive(original).await), OperateRefusal::Original(original));
    assert_eq!(
        refusal(fixture.queue.edit_and_redrive(original, "again", None).await),
        OperateRefusal::Original(original)
    );
    fixture.counts().await;
}

#[tokio::test]
async fn an_edited_dead_letter_is_sent_anew_where_its_place_has_passed() {
    for options in [QueueOptions::default(), QueueOptions::by_position()] {
        let is_positional = options.order != QueueOptions::default().order;
        let fixture = Fixture::new(options).await;
        let message = Message::new("broken").workflow("w").message_id("m");
        let number = fixture.accept(if is_positional { message.position(1) } else { message }).await;
        fixture.must().await.dead_letter("bad", "").await.unwrap();
        let position = is_positional.then_some(2);
        let redriven = fixture.queue.edit_and_redrive(number, "mended", position).await.unwrap();
        assert!(matches!(redriven, Redriven::AsNew(new) if new > number), "{redriven:?}");
        assert_eq!(dead_letters(&fixture.queue).await.len(), 1);
        assert_eq!(fixture.drain().await, ["mended"]);
        fixture.counts().await;
    }
}

#[tokio::test]
async fn a_dead_letter_that_a_settlement_has_added_properties_to_can_be_edited() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let number = fixture.accept(Message::new("x")).await;
    fixture.must().await.abandon_with(Abandon::now().property("why", "no stock")).await.unwrap();
    fixture.must().await.dead_letter("bad", "").await.unwrap();
    let redriven = fixture.queue.edit_and_redrive(number, "y", None).await.unwrap();
    assert_eq!(redriven, Redriven::InPlace);
    assert_eq!(fixture.drain().await, ["y"]);
    fixture.counts().await;
}

#[tokio::test]
async fn an_edit_that_is_refused_or_tried_changes_nothing() {
    let options = QueueOptions::by_position().body_bytes_max(10);
    let fixture = Fixture::new(options).await;
    let number = fixture.send_at("w", 1).await;
    fixture.must().await.dead_letter("bad", "").await.unwrap();
    let queue = &fixture.queue;
    let (bytes, bytes_max) = (11, 10);
    assert_eq!(
        refusal(queue.edit_and_redrive(number, "01234567890", Some(2)).await),
        OperateRefusal::Send(SendRefusal::BodyTooLarge { index: 0, bytes, bytes_max })
    );
    assert_eq!(refusal(queue.edit_and_redrive(number, "x", None).await), OperateRefusal::PlacePassed(number));
    let dry = fixture.engine.client().dry_run().queue("q").unwrap();
    assert!(dry.edit_and_redrive(number, "x", Some(2)).await.is_ok());
    let left = dead_letters(queue).await;
    assert_eq!(
        (left.len(), left[0].sequence_number, left[0].dead_letter.reason.as_str()),
        (1, number, "bad")
    );
    assert_eq!(body(queue, number).await, "1");
}

#[tokio::test]
async fn an_edit_is_on_disk_and_the_file_is_sound() {
    let fixture = FileFixture::new();
    let (engine, queue) = fixture.open().await;
    let number = queue.send(Message::new("broken").workflow("w")).await.unwrap().sequence_number().unwrap();
    let wait = std::time::Duration::ZERO;
    queue.receive(wait).await.unwrap().unwrap().dead_letter("bad", "").await.unwrap();
    queue.workflow("w").unwrap().hold("look").await.unwrap();
    queue.edit_and_redrive(number, "a longer body", None).await.unwrap();
    engine.close().await;
    let found = seriatim::store::verify(fixture.path(), |_| {}).unwrap();
    assert!(found.is_sound() && found.compared, "{:#?}", found.damages);
    let (engine, queue) = fixture.open().await;
    queue.workflow("w").unwrap().resume().await.unwrap();
    let delivery = queue.receive(wait).await.unwrap().unwrap();
    assert_eq!(&delivery.message().body[..], b"a longer body");
    drop(delivery);
    engine.close().await;
}
