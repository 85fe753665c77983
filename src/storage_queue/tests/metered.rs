//! What is counted.

use crate::storage_queue::tests::fixture::Fixture;
use crate::storage_queue::tests::fixture::message;

/// What was counted, without what never came.
fn counted(fixture: &Fixture) -> Vec<(&'static str, &'static str, u64)> {
    let requests = fixture.meters.read().requests.into_iter().filter(|request| request.count > 0);
    requests.map(|request| (request.operation, request.status, request.count)).collect()
}

#[tokio::test]
async fn every_request_is_counted_by_what_it_asks_for_and_how_that_ended() {
    let fixture = Fixture::open().await;
    assert_eq!(counted(&fixture), []);
    fixture.make("orders").await;
    for text in ["a", "b"] {
        fixture.put("orders", text).await;
    }
    fixture.ask("POST", "/shop/none/messages", &message("a")).await;
    fixture.ask("GET", "/shop/orders/messages", "").await;
    fixture.ask("GET", "/shop/orders/messages?peekonly=true", "").await;
    fixture.ask("PUT", "/shop/orders/messages/1?popreceipt=x&visibilitytimeout=0", "").await;
    fixture.ask("PUT", "/shop?restype=service&comp=properties", "<a/>").await;
    assert_eq!(
        counted(&fixture),
        [
            ("set_service_properties", "4xx", 1),
            ("create_queue", "2xx", 1),
            ("put_message", "2xx", 2),
            ("put_message", "4xx", 1),
            ("get_messages", "2xx", 1),
            ("peek_messages", "2xx", 1),
            ("update_message", "4xx", 1),
        ]
    );
}

#[tokio::test]
async fn a_request_without_a_signature_is_counted_by_what_it_asks_for() {
    let fixture = Fixture::keyed("rights = [\"manage\"]").await;
    fixture.ask("GET", "/shop?comp=list", "").await;
    assert_eq!(counted(&fixture), [("list_queues", "4xx", 1)]);
}

#[tokio::test]
async fn what_cannot_be_asked_is_counted_under_one_name_whatever_it_is() {
    let fixture = Fixture::open().await;
    for (method, path) in
        [("PATCH", "/shop/orders/messages"), ("GET", "/"), ("GET", "/shop/orders/x/y"), ("GET", "/shop/%ff")]
    {
        fixture.ask(method, path, "").await;
    }
    assert_eq!(counted(&fixture), [("unknown", "4xx", 4)]);
}
