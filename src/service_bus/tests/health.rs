//! Whether the endpoint serves, as programs that wait for an emulator ask for it.

use http::Method;

use crate::service_bus::tests::administering::ask_with;
use crate::service_bus::tests::administering::entry;
use crate::service_bus::tests::wire::Host;

#[tokio::test]
async fn whoever_waits_for_the_endpoint_hears_that_it_is_healthy() {
    let host = Host::open().await;
    let answer = ask_with(&host, (Method::GET, "/health"), &[], "").await;
    let expected = r#"{"status":"healthy","message":"Service is healthy."}"#;
    assert_eq!((answer.status, answer.text.as_str()), (200, expected));
    let of_a_page = [("origin", "https://example.org")];
    assert_eq!(ask_with(&host, (Method::GET, "/health"), &of_a_page, "").await.status, 403);
}

#[tokio::test]
async fn a_queue_may_be_called_health() {
    let host = Host::open().await;
    let path = "/health?api-version=2021-05";
    assert_eq!(ask_with(&host, (Method::GET, path), &[], "").await.status, 404);
    let made = ask_with(&host, (Method::PUT, path), &[], entry("QueueDescription", "")).await;
    assert_eq!(made.status, 201, "{made:?}");
    let found = ask_with(&host, (Method::GET, path), &[], "").await;
    assert!(found.status == 200 && found.text.contains("QueueDescription"), "{found:?}");
    assert_eq!(ask_with(&host, (Method::DELETE, path), &[], "").await.status, 200);
}
