//! What nodes note of where messages are placed while several of them put the same definitions in force.

use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::router::close;
use crate::cluster::tests::router::nodes;
use crate::id::QueueName;

#[tokio::test(flavor = "multi_thread")]
async fn a_note_that_is_taken_back_leaves_what_another_node_has_put_in_force_since() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let (first, second) = (nodes[0].handle(), nodes[1].handle());
    let queue = QueueName::new("q").unwrap();
    let noted = first.note_sources_behind(&queue, "key from /b", 0).await.unwrap();
    second.note_sources(&queue, "key from /b").await.unwrap();
    first.take_back_sources(&queue, Some("key from /a"), noted).await.unwrap();
    let (_, stands) = second.sources_of(&queue).await.unwrap();
    assert_eq!(stands.as_deref(), Some("key from /b"));
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_note_is_put_behind_the_one_that_was_read_and_taken_back_where_there_was_none() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let (first, second) = (nodes[0].handle(), nodes[1].handle());
    let queue = QueueName::new("q").unwrap();
    assert_eq!(first.sources_of(&queue).await.unwrap(), (0, None));
    let noted = second.note_sources_behind(&queue, "key from /b", 0).await.unwrap();
    first.note_sources_behind(&queue, "key from /b", 0).await.expect_err("another was faster");
    second.take_back_sources(&queue, None, noted).await.unwrap();
    let (behind, none) = first.sources_of(&queue).await.unwrap();
    assert_eq!(none, None);
    let noted = first.note_sources_behind(&queue, "key from /c", behind).await.unwrap();
    first.take_back_sources(&queue, Some("key from /a"), noted).await.unwrap();
    let (_, before) = second.sources_of(&queue).await.unwrap();
    assert_eq!(before.as_deref(), Some("key from /a"));
    close(nodes).await;
}
