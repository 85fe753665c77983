//! What is asked of the daemon around the engine.

use std::time::Duration;

use futures_util::future::try_join_all;
use serde_json::json;

use crate::engine::Workflow;
use crate::message::Message;
use crate::queue::QueueOptions;
use crate::server::tests::fixture::Fixture;
use crate::server::tests::wire::Wire;

#[tokio::test]
async fn health_readiness_and_metrics_are_told() {
    let fixture = Fixture::open().await;
    assert_eq!(fixture.get("/healthz").await.body, "ok\n");
    assert_eq!(fixture.get("/readyz").await.status, 200);
    *fixture.host.not_ready.lock().unwrap() = Some("the daemon is draining".to_owned());
    let not_ready = fixture.get("/readyz").await;
    assert_eq!((not_ready.status.as_u16(), not_ready.code()), (503, "not_ready".to_owned()));
    assert_eq!(not_ready.json()["detail"], "the daemon is draining");
    let metrics = fixture.get("/metrics").await;
    assert!(metrics.headers["content-type"].to_str().unwrap().starts_with("application/openmetrics-text"));
    assert_eq!(fixture.get("/v1/status").await.json()["state"], "ready");
}

#[tokio::test]
async fn definitions_are_listed_reloaded_and_paused() {
    let fixture = Fixture::open().await;
    assert_eq!(fixture.get("/v1/definitions").await.json()["definitions"][0]["queue"], "defined");
    assert_eq!(fixture.post("/v1/definitions/reload", json!({})).await.status, 200);
    assert_eq!(fixture.post("/v1/queues/defined/pause", json!({})).await.status, 204);
    assert_eq!(fixture.get("/v1/definitions").await.json()["definitions"][0]["paused"], true);
    assert_eq!(fixture.post("/v1/queues/defined/resume", json!({})).await.status, 204);
    assert_eq!(fixture.get("/v1/definitions").await.json()["definitions"][0]["paused"], false);
    assert_eq!(fixture.post("/v1/queues/orders/pause", json!({})).await.code(), "no_handlers");
    assert_eq!(fixture.get("/v1/schedules").await.json()["schedules"][0]["cron"], "0 2 * * *");
}

#[tokio::test]
async fn a_backup_is_an_engine_of_its_own_and_never_replaces_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let fixture = Fixture::open_with(|_, host| host.backups = Some(path)).await;
    fixture.create("orders", QueueOptions::default()).await.send(Message::new("x")).await.unwrap();
    let made = fixture.post("/v1/backup", json!({ "path": "monday.redb" })).await;
    assert_eq!(made.status, 200, "{made:?}");
    let copy = crate::engine::Engine::open(made.json()["path"].as_str().unwrap()).await.unwrap();
    assert_eq!(copy.client().queue("orders").unwrap().view().await.unwrap().counts.ready, 1);
    copy.close().await;
    let again = fixture.post("/v1/backup", json!({ "path": "monday.redb" })).await;
    assert_eq!((again.status.as_u16(), again.code()), (409, "backup_failed".to_owned()));
    assert_eq!(fixture.post("/v1/backup", json!({ "path": "../x" })).await.json()["field"], "path");
    assert_eq!(fixture.get("/healthz").await.status, 200);
    assert_eq!(fixture.get("/v1/queues/orders").await.status, 200, "the engine goes on");
}

#[tokio::test]
async fn what_happens_is_told_as_it_happens() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    let others = fixture.create("others", QueueOptions::default()).await;
    let mut wire = Wire::open(fixture.address).await;
    wire.say("GET /v1/events?queue=orders HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert!(wire.read_until("listening\n\n").await.contains("text/event-stream"));
    others.workflow("w").unwrap().hold("not asked for").await.unwrap();
    queue.send(Message::new("x").workflow("w")).await.unwrap();
    let mut delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    delivery.abandon_after(Duration::from_secs(60), "busy").await.unwrap();
    let described = wire.read_until("}\n\n").await;
    assert!(
        described.contains("event: blocked\ndata: {") && described.contains("\"reason\":\"busy\""),
        "{described}"
    );
    queue.workflow("w").unwrap().hold("look at it").await.unwrap();
    let described = wire.read_until("}\n\n").await;
    assert!(described.contains("event: held\n") && !described.contains("not asked for"), "{described}");
    fixture.stopping.cancel();
    assert!(wire.end().await.ends_with("0\r\n\r\n"), "the stream ends in order");
}

#[tokio::test]
async fn a_listener_that_was_too_slow_is_told_how_much_it_missed() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    let mut wire = Wire::open(fixture.address).await;
    wire.say("GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    wire.read_until("listening\n\n").await;
    // More than the engine keeps and the way to the listener holds; many at once, as a listener that takes nothing is given up in time.
    let reason = "r".repeat(1_000);
    let workflows: Vec<Workflow> =
        (0..200).map(|number| queue.workflow(format!("w{number}")).unwrap()).collect();
    for _ in 0..60 {
        try_join_all(workflows.iter().map(|workflow| workflow.hold(&reason))).await.unwrap();
        try_join_all(workflows.iter().map(Workflow::resume)).await.unwrap();
    }
    assert!(wire.read_until("event: missed\ndata: {\"missed\":").await.contains("event: held"));
}

#[tokio::test]
async fn a_closed_engine_is_told_as_that() {
    let Fixture { engine, address, .. } = Fixture::open().await;
    engine.close().await;
    let request = http::Request::get("/v1/queues").header("host", "localhost");
    let described =
        crate::server::tests::fixture::ask(address, request.body(Default::default()).unwrap()).await;
    assert_eq!((described.status.as_u16(), described.code()), (503, "closed".to_owned()));
    assert_eq!(described.headers["retry-after"], "1");
}
