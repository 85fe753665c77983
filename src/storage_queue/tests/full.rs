//! A disk that is nearly full: what is new is answered 507, what is stored is got and deleted.

use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::storage_queue::tests::fixture::Fixture;
use crate::testing::ManualClock;

/// More than any disk has.
const TOO_MUCH_BYTES: u64 = 1 << 56;

#[tokio::test]
async fn a_put_to_a_full_disk_is_answered_507_and_what_is_stored_is_got_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let (path, clock) = (folder.path().join("a.redb"), ManualClock::new(Timestamp::from_millis(1_000_000)));
    let builder = || Engine::builder(&path).clock(clock.clone());
    let fixture = Fixture::on(builder().open().await.unwrap(), clock.clone(), None).await;
    fixture.make("work").await;
    assert_eq!(fixture.put("work", "before").await.status, 201);
    let Fixture { engine, .. } = fixture;
    engine.close().await;
    let engine = builder().head_room(TOO_MUCH_BYTES).open().await.unwrap();
    let fixture = Fixture::on(engine, clock.clone(), None).await;
    for (method, path) in [("POST", "/shop/work/messages"), ("PUT", "/shop/other")] {
        let body = crate::storage_queue::tests::fixture::message("new");
        let described = fixture.ask(method, path, if method == "POST" { &body } else { "" }).await;
        assert_eq!((described.status, described.code()), (507, "InsufficientStorage"), "{described:?}");
        assert!(described.body.contains("disk"), "it says why: {described:?}");
    }
    let got = fixture.ask("GET", "/shop/work/messages", "").await;
    assert_eq!(got.text("MessageText"), "before");
    let (id, receipt) = (got.text("MessageId"), got.text("PopReceipt"));
    let path = format!("/shop/work/messages/{id}?popreceipt={receipt}");
    let text = crate::storage_queue::tests::fixture::message("another");
    let updated = fixture.ask("PUT", &format!("{path}&visibilitytimeout=5"), &text).await;
    assert_eq!((updated.status, updated.code()), (507, "InsufficientStorage"), "{updated:?}");
    assert_eq!(fixture.ask("DELETE", &path, "").await.status, 204);
}
