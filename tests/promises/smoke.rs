//! A first walk through.

use std::time::Duration;

use seriatim::Engine;
use seriatim::Message;
use seriatim::QueueOptions;
use seriatim::Receipt;

#[tokio::test]
async fn a_message_goes_through() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.redb");
    let engine = Engine::open(&path).await.expect("open");
    let queue = engine
        .client()
        .create_queue("orders", QueueOptions::by_position())
        .await
        .expect("create");
    for position in [2, 3, 1] {
        let receipt = queue
            .send(
                Message::new(format!("{position}"))
                    .workflow("w")
                    .position(position),
            )
            .await;
        assert!(matches!(receipt, Ok(Receipt::Accepted(_))), "{receipt:?}");
    }
    for position in 1..=2 {
        let mut delivery = queue
            .receive(Duration::from_secs(5))
            .await
            .expect("receive")
            .expect("one");
        assert_eq!(delivery.message().rank, position);
        assert!(queue.receive(Duration::ZERO).await.expect("receive").is_none());
        delivery.complete().await.expect("complete");
    }
    engine.close().await;
    drop(queue);
    let engine = Engine::open(&path).await.expect("open");
    let queue = engine.client().queue("orders").expect("a name");
    let mut delivery = queue
        .receive(Duration::from_secs(5))
        .await
        .expect("receive")
        .expect("one");
    assert_eq!(delivery.message().rank, 3);
    delivery.complete().await.expect("complete");
    let counts = queue.view().await.expect("view").counts;
    assert_eq!(counts.completed, 3, "{counts:?}");
}
