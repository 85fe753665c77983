//! Queues and their metadata.

use std::collections::BTreeMap;

use crate::queue::QueueOptions;
use crate::storage_queue::records::RECORDS;
use crate::storage_queue::tests::fixture::Fixture;

#[tokio::test]
async fn a_queue_is_made_once_and_again_only_as_it_is() {
    let fixture = Fixture::open().await;
    let meta = |value| [("host", "localhost"), ("x-ms-meta-purpose", value)];
    assert_eq!(fixture.ask_with("PUT", "/shop/orders", &meta("tests"), "").await.status, 201);
    assert_eq!(fixture.ask_with("PUT", "/shop/orders", &meta("tests"), "").await.status, 204);
    let refused = fixture.ask_with("PUT", "/shop/orders", &meta("other"), "").await;
    assert_eq!((refused.status, refused.code()), (409, "QueueAlreadyExists"));
    let described = fixture.ask("GET", "/shop/orders?comp=metadata", "").await;
    assert_eq!(described.headers["x-ms-meta-purpose"], "tests");
    assert_eq!(described.headers["x-ms-approximate-messages-count"], "0");
}

#[tokio::test]
async fn of_two_who_make_a_queue_at_once_the_second_does_not_replace_what_the_first_said_of_it() {
    let fixture = Fixture::open().await;
    let made = async |value: &str| {
        let headers = [("host", "localhost"), ("x-ms-meta-purpose", value)];
        fixture.ask_with("PUT", "/shop/orders", &headers, "").await.status
    };
    let (first, second) = tokio::join!(made("first"), made("second"));
    assert_eq!([first, second], [201, 409]);
    let described = fixture.ask("GET", "/shop/orders?comp=metadata", "").await;
    assert_eq!(described.headers["x-ms-meta-purpose"], "first");
}

#[tokio::test]
async fn what_was_said_of_a_queue_ends_with_it() {
    let fixture = Fixture::open().await;
    let meta = [("host", "localhost"), ("x-ms-meta-purpose", "tests")];
    fixture.ask_with("PUT", "/shop/orders", &meta, "").await;
    assert_eq!(fixture.ask("DELETE", "/shop/orders", "").await.status, 204);
    assert_eq!(fixture.ask("DELETE", "/shop/orders", "").await.code(), "QueueNotFound");
    fixture.make("orders").await;
    let described = fixture.ask("GET", "/shop/orders?comp=metadata", "").await;
    assert!(!described.headers.contains_key("x-ms-meta-purpose"));
}

#[tokio::test]
async fn what_was_said_of_a_queue_ends_with_it_whoever_deletes_it() {
    let fixture = Fixture::open().await;
    let client = fixture.engine.client();
    let meta = [("host", "localhost"), ("x-ms-meta-purpose", "tests")];
    let purpose = async || {
        let described = fixture.ask("GET", "/shop/orders?comp=metadata", "").await;
        described.headers.get("x-ms-meta-purpose").cloned()
    };
    for set in ["/shop/orders", "/shop/orders?comp=metadata"] {
        fixture.ask_with("PUT", set, &meta, "").await;
        assert_eq!(purpose().await.as_deref(), Some("tests"));
        client.delete_queue("orders").await.unwrap();
        fixture.pass(1);
        client.create_queue("orders", QueueOptions::default()).await.unwrap();
        assert_eq!(purpose().await, None, "{set}");
        let listed = fixture.ask("GET", "/shop?comp=list&include=metadata", "").await;
        assert_eq!((listed.texts("Name"), listed.texts("purpose").len()), (vec!["orders"], 0));
        assert_eq!(
            fixture.ask("PUT", "/shop/orders", "").await.status,
            204,
            "it is there as it is asked for"
        );
    }
}

#[tokio::test]
async fn what_cannot_be_made_is_not_told_to_be_there_and_nothing_that_was_said_of_it_is_kept() {
    let fixture = Fixture::open().await;
    let client = fixture.engine.client();
    client.create_topic("orders").await.unwrap();
    let meta = [("host", "localhost"), ("x-ms-meta-purpose", "tests")];
    let refused = fixture.ask_with("PUT", "/shop/orders", &meta, "").await;
    assert_eq!((refused.status, refused.code()), (409, "ResourceTypeMismatch"));
    client.delete_topic("orders").await.unwrap();
    client.create_queue("orders", QueueOptions::default()).await.unwrap();
    let described = fixture.ask("GET", "/shop/orders?comp=metadata", "").await;
    assert!(!described.headers.contains_key("x-ms-meta-purpose"));
}

#[tokio::test]
async fn metadata_that_were_kept_before_their_queue_was_written_down_are_still_read() {
    let fixture = Fixture::open().await;
    fixture.make("orders").await;
    let before = BTreeMap::from([("purpose", "tests")]);
    RECORDS.store(fixture.engine.client(), "orders", Some(&before)).await.unwrap();
    let described = fixture.ask("GET", "/shop/orders?comp=metadata", "").await;
    assert_eq!(described.headers["x-ms-meta-purpose"], "tests");
}

#[tokio::test]
async fn queues_are_listed_in_pages_and_only_those_that_azure_could_name() {
    let fixture = Fixture::open().await;
    for name in ["list-a", "list-b", "list-c", "other"] {
        fixture.make(name).await;
    }
    for name in ["List", "list-d.x"] {
        fixture.engine.client().create_queue(name, QueueOptions::default()).await.unwrap();
    }
    let page = fixture.ask("GET", "/shop?comp=list&prefix=list&maxresults=2", "").await;
    assert_eq!((page.texts("Name"), page.text("NextMarker")), (vec!["list-a", "list-b"], "list-b"));
    let page = fixture.ask("GET", "/shop/?comp=list&prefix=list&maxresults=2&marker=list-b", "").await;
    assert_eq!((page.texts("Name"), page.text("NextMarker")), (vec!["list-c"], ""));
    assert!(page.body.contains("<NextMarker />"), "a beginning and an end would be one more page: {page:?}");
    assert_eq!(fixture.ask("GET", "/shop?comp=list", "").await.texts("Name").len(), 4);
    let refused = fixture.ask("GET", "/shop?comp=list&maxresults=0", "").await;
    assert_eq!(refused.code(), "OutOfRangeQueryParameterValue");
}

#[tokio::test]
async fn a_queue_that_a_file_defines_is_not_deleted() {
    let fixture = Fixture::open().await;
    fixture.make("defined").await;
    let refused = fixture.ask("DELETE", "/shop/defined", "").await;
    assert_eq!((refused.status, refused.code()), (409, "QueueIsDefined"));
}

#[tokio::test]
async fn a_cleared_queue_is_empty_of_hidden_messages_too() {
    let fixture = Fixture::open().await;
    fixture.make("work").await;
    fixture.put("work", "a").await;
    fixture.put("work", "b").await;
    fixture.ask("GET", "/shop/work/messages", "").await;
    assert_eq!(fixture.ask("DELETE", "/shop/work/messages", "").await.status, 204);
    let described = fixture.ask("GET", "/shop/work?comp=metadata", "").await;
    assert_eq!(described.headers["x-ms-approximate-messages-count"], "0");
    assert_eq!(fixture.ask("DELETE", "/shop/nowhere/messages", "").await.code(), "QueueNotFound");
}

#[tokio::test]
async fn metadata_that_no_header_could_tell_are_refused() {
    let fixture = Fixture::open().await;
    for name in ["x-ms-meta-", "x-ms-meta-1a", "x-ms-meta-a-b"] {
        let refused =
            fixture.ask_with("PUT", "/shop/orders", &[("host", "localhost"), (name, "x")], "").await;
        assert_eq!(refused.code(), "InvalidMetadata", "{name}");
    }
    let long = "x".repeat(9_000);
    let refused =
        fixture.ask_with("PUT", "/shop/orders", &[("host", "localhost"), ("x-ms-meta-a", &long)], "").await;
    assert_eq!(refused.code(), "MetadataTooLarge");
}

#[tokio::test]
async fn a_name_of_a_wrong_length_is_told_from_one_with_wrong_characters() {
    let fixture = Fixture::open().await;
    for (name, code) in [
        ("ab".to_owned(), "OutOfRangeInput"),
        ("x".repeat(64), "OutOfRangeInput"),
        ("a--b".to_owned(), "InvalidResourceName"),
        ("Orders".to_owned(), "InvalidResourceName"),
    ] {
        let refused = fixture.ask("PUT", &format!("/shop/{name}"), "").await;
        assert_eq!((refused.status, refused.code()), (400, code), "{name}");
    }
}

#[tokio::test]
async fn every_answer_names_its_request() {
    let fixture = Fixture::open().await;
    let mut ids = std::collections::BTreeSet::new();
    for (method, path) in [("PUT", "/shop/orders"), ("PUT", "/shop/x"), ("GET", "/"), ("PATCH", "/shop/%ff")]
    {
        let headers = [("host", "localhost"), ("x-ms-client-request-id", "mine")];
        let described = fixture.ask_with(method, path, &headers, "").await;
        assert_eq!(described.headers["x-ms-client-request-id"], "mine", "{method} {path}");
        ids.insert(described.headers["x-ms-request-id"].clone());
    }
    assert_eq!(ids.len(), 4, "{ids:?}");
}
