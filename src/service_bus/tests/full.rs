//! A disk that is nearly full: senders are told by the condition that says so, receivers go on.

use crate::amqp::tests::peer::DeliveryOutcome;
use crate::amqp::tests::peer::Performative;
use crate::engine::Engine;
use crate::message::Message;
use crate::queue::QueueOptions;
use crate::service_bus::tests::bare::Bare;
use crate::service_bus::tests::bare::Fixture;
use crate::service_bus::tests::bare::credit;
use crate::service_bus::tests::bare::ends;
use crate::service_bus::tests::bare::payload;
use crate::service_bus::tests::bare::transfer;

/// More than any disk has.
const TOO_MUCH_BYTES: u64 = 1 << 56;

#[tokio::test]
async fn a_send_to_a_full_disk_is_rejected_as_a_resource_limit_and_what_is_stored_is_received() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    let engine = Engine::open(&path).await.unwrap();
    let queue = engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
    queue.send(Message::new("before")).await.unwrap();
    engine.close().await;
    let fixture = Fixture::on(Engine::builder(&path).head_room(TOO_MUCH_BYTES).open().await.unwrap()).await;
    let mut bare = Bare::connect(&fixture).await;
    bare.attach_sender(0, "q").await;
    bare.says([transfer(0, 0, false, &payload("new", None))]).await;
    let frames = bare.frames_until(|frames| matches!(frames, Performative::Disposition(_))).await;
    let Some(Performative::Disposition(described)) = frames.last() else { panic!("{frames:?}") };
    let Some(DeliveryOutcome::Rejected(Some(error))) = &described.state else { panic!("{described:?}") };
    assert_eq!(error.condition.as_str(), "amqp:resource-limit-exceeded");
    let description = error.description.as_ref().expect("in a sentence").to_string();
    assert!(description.contains("disk"), "{description}");
    bare.attach_receiver(1, "q").await;
    bare.says([credit(1, 0, 1)]).await;
    assert_eq!(bare.bodies(1).await, ["before"]);
    bare.says([ends(0, 0, false, DeliveryOutcome::Accepted)]).await;
    bare.frames_until(|frames| matches!(frames, Performative::Disposition(_))).await;
    let counts = fixture.client().queue("q").unwrap().view().await.unwrap().counts;
    assert_eq!((counts.completed, counts.accepted), (1, 1));
}
