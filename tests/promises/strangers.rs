//! A lock token is of one queue: in another it opens nothing.

use bytes::Bytes;
use seriatim::Completion;
use seriatim::Message;
use seriatim::Outcome;
use seriatim::QueueOptions;
use seriatim::error::SettleRefusal;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::refusal;

#[tokio::test]
async fn a_lock_token_is_of_no_use_in_another_queue() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let client = fixture.engine.client();
    let other = client.create_queue("other", QueueOptions::default()).await.unwrap();
    fixture.send("w", "one").await;
    other.send(Message::new("one").workflow("w")).await.unwrap();
    let id = fixture.must().await.keep();
    let (stranger, token) = (other.settler(), id.lock_token());
    assert_eq!(
        refusal(stranger.complete(id, Completion::new().state("mine")).await),
        SettleRefusal::LockLost
    );
    assert_eq!(refusal(stranger.end(id, Outcome::Release).await), SettleRefusal::LockLost);
    assert_eq!(refusal(stranger.renew(token).await), SettleRefusal::LockLost);
    assert_eq!(stranger.complete_all(&[id]).await.unwrap(), [Err(SettleRefusal::LockLost)]);
    assert_eq!(
        refusal(stranger.settle_run(token, 1, Completion::new(), None).await),
        SettleRefusal::LockLost
    );
    assert_eq!(other.view().await.unwrap().counts.ready, 1, "nothing of the other queue has changed");
    fixture.queue.settler().complete(id, Completion::new()).await.unwrap();
}

#[tokio::test]
async fn a_taken_workflow_is_of_no_use_in_another_queue() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let client = fixture.engine.client();
    let other = client.create_queue("other", QueueOptions::default()).await.unwrap();
    fixture.send("w", "one").await;
    other.send(Message::new("one").workflow("w")).await.unwrap();
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    let (stranger, token) = (other.settler(), taken.lock_token());
    let state = Some(Bytes::from_static(b"mine"));
    assert_eq!(refusal(stranger.set_state(token, state).await), SettleRefusal::LockLost);
    assert_eq!(refusal(stranger.renew(token).await), SettleRefusal::LockLost);
    assert_eq!(other.workflow("w").unwrap().state().await.unwrap(), None);
    taken.close().await.unwrap();
}
