//! The client of the library and the server understand each other.

use serde_json::json;

use crate::api::OperateRequest;
use crate::api::ReceiveRequest;
use crate::api::SendEnvelope;
use crate::api::Verb;
use crate::api::options::OptionsEnvelope;
use crate::api::options::OrderWord;
use crate::api::views::BlockedCause;
use crate::queue::QueueOptions;
use crate::remote::Happening;
use crate::remote::Remote;
use crate::server::tests::fixture::Fixture;

fn at(position: u64, body: &str) -> SendEnvelope {
    SendEnvelope {
        workflow_id: Some("w 1/2".to_owned()),
        position: Some(position),
        body: Some(serde_json::value::RawValue::from_string(body.to_owned()).unwrap()),
        ..SendEnvelope::default()
    }
}

#[tokio::test]
async fn what_a_client_sends_it_finds_receives_and_settles() {
    let fixture = Fixture::open().await;
    let remote = Remote::connect(&format!("http://{}", fixture.address), None).unwrap();
    let options = OptionsEnvelope { order: Some(OrderWord::Position), ..OptionsEnvelope::default() };
    let queue = remote.put_queue("orders", &options).await.unwrap();
    assert_eq!(queue.options.order, Some(OrderWord::Position));
    let batch = [at(1, "{\"n\":18446744073709551616}"), at(3, "3"), at(0, "0")];
    let sent = remote.send_batch("orders", &batch).await.unwrap();
    assert_eq!((sent[0].is_ok(), sent[2].as_ref().unwrap_err().field.as_deref()), (true, Some("position")));

    let stored = remote.messages("orders", 0, 10).await.unwrap().messages;
    assert_eq!(stored[0].body.as_ref().unwrap().get(), "{\"n\":18446744073709551616}");
    let workflow = remote.workflow("orders", "w 1/2").await.unwrap().unwrap();
    assert_eq!(workflow.messages, 2);
    let request = ReceiveRequest { max: Some(10), ..ReceiveRequest::default() };
    let received = remote.receive("orders", &request).await.unwrap();
    let id = received.deliveries[0].delivery.clone().unwrap();
    remote.settle("orders", &id, "complete", &json!({})).await.unwrap();
    remote.settle("orders", &id, "complete", &json!({})).await.expect("the same again");
    let other = remote.settle("orders", &id, "abandon", &json!({})).await.unwrap_err();
    assert_eq!(other.problem().unwrap().code, "delivery_settled");
    let blocked = remote.blocked(None, None, None, 10).await.unwrap().blocked;
    assert_eq!((blocked[0].cause, blocked[0].first_missing), (BlockedCause::Gap, Some(2)));
}

#[tokio::test]
async fn what_an_operator_does_a_client_hears_of() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    let remote = Remote::connect(&format!("http://{}", fixture.address), None).unwrap();
    let mut events = remote.events(Some("orders")).await.unwrap();
    queue.workflow("w").unwrap().hold("look at it").await.unwrap();
    match events.next().await.unwrap() {
        Some(Happening::Event(event)) => {
            assert_eq!((event.event.as_str(), event.workflow_id.as_deref()), ("held", Some("w")))
        }
        other => panic!("{other:?}"),
    }
    let outcome = remote.operate("orders", "w", Verb::Resume, &OperateRequest::default()).await.unwrap();
    assert!(!outcome.dry_run && !outcome.effect.is_empty());
    assert_eq!(remote.state("orders", "w").await.unwrap(), None);
    remote.set_state("orders", "w", Some("{}".into())).await.unwrap();
    assert_eq!(remote.state("orders", "w").await.unwrap().unwrap(), "{}");
    assert_eq!(remote.status().await.unwrap().version, "0.0.0");
    assert!(
        remote
            .definitions()
            .await
            .unwrap()
            .definitions
            .iter()
            .any(|definition| definition.queue == "defined")
    );
    remote.pause("defined").await.unwrap();
    remote.delete_queue("orders").await.unwrap();
    assert!(remote.queues(None, 10).await.unwrap().queues.is_empty());
}

#[tokio::test]
async fn what_a_client_sends_to_a_topic_under_a_key_is_stored_once() {
    let fixture = Fixture::open().await;
    let remote = Remote::connect(&format!("http://{}", fixture.address), None).unwrap();
    let path = |rest: &str| format!("/v1/topics/orders{rest}");
    fixture.put(&path(""), json!({})).await;
    fixture.put(&path("/subscriptions/all"), json!({})).await;
    let send = async |body| remote.publish_once("orders", "k", &[at(1, body)]).await;
    let first = send("1").await.unwrap();
    assert_eq!(first.copies.len(), 1);
    assert_eq!(json!(send("1").await.unwrap()), json!(first));
    assert_eq!(send("2").await.unwrap_err().problem().unwrap().code, "key_reused");
}
