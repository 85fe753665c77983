//! Messages and their receipts.

use crate::storage_queue::tests::fixture::Answered;
use crate::storage_queue::tests::fixture::Fixture;
use crate::storage_queue::tests::fixture::message;

/// Gets the next message, hidden for so many seconds.
async fn get(fixture: &Fixture, lasts: u64) -> Answered {
    fixture.ask("GET", &format!("/shop/work/messages?visibilitytimeout={lasts}"), "").await
}

/// The path of the message that an answer tells of, with its receipt.
fn at(described: &Answered) -> String {
    format!("/shop/work/messages/{}?popreceipt={}", described.text("MessageId"), described.text("PopReceipt"))
}

async fn fixture() -> Fixture {
    let fixture = Fixture::open().await;
    fixture.make("work").await;
    fixture
}

#[tokio::test]
async fn a_message_is_got_as_it_was_put_and_deleted_with_its_receipt() {
    let fixture = fixture().await;
    let put = fixture.put("work", "a &lt;b&gt; &amp; c").await;
    assert_eq!(put.status, 201);
    let got = get(&fixture, 30).await;
    assert_eq!((got.text("MessageText"), got.text("DequeueCount")), ("a &lt;b&gt; &amp; c", "1"));
    assert_eq!(got.text("MessageId"), put.text("MessageId"));
    assert_eq!(fixture.ask("DELETE", &at(&got), "").await.status, 204);
    assert_eq!(fixture.ask("DELETE", &at(&got), "").await.code(), "MessageNotFound");
    let counts = fixture.engine.client().queue("work").unwrap().view().await.unwrap().counts;
    assert_eq!(counts.completed, 1);
}

#[tokio::test]
async fn a_receipt_is_void_after_a_second_dequeue_and_good_before() {
    let fixture = fixture().await;
    fixture.put("work", "a").await;
    let first = get(&fixture, 1).await;
    fixture.pass(60);
    let update = format!("{}&visibilitytimeout=1", at(&first));
    let updated = fixture.ask("PUT", &update, "").await;
    assert_eq!(updated.status, 204, "its time is over, but nobody else has it");
    fixture.pass(1);
    let second = get(&fixture, 30).await;
    assert_eq!(second.text("DequeueCount"), "2");
    for stale in
        [at(&first), at(&first).replace(first.text("PopReceipt"), &updated.headers["x-ms-popreceipt"])]
    {
        let refused = fixture.ask("DELETE", &stale, "").await;
        assert_eq!((refused.status, refused.code()), (400, "PopReceiptMismatch"));
    }
    assert_eq!(fixture.ask("DELETE", &at(&second), "").await.status, 204);
}

#[tokio::test]
async fn an_update_of_a_message_that_is_gone_is_not_judged_by_the_next() {
    let fixture = fixture().await;
    fixture.put("work", "a").await;
    let got = get(&fixture, 30).await;
    let next = fixture.ask("POST", "/shop/work/messages?messagettl=5", &message("b")).await;
    assert_eq!(next.status, 201);
    assert_eq!(fixture.ask("DELETE", &at(&got), "").await.status, 204);
    let update = format!("{}&visibilitytimeout=60", at(&got));
    assert_eq!(fixture.ask("PUT", &update, "").await.code(), "MessageNotFound");
}

#[tokio::test]
async fn an_update_changes_text_time_and_receipt_and_keeps_the_count() {
    let fixture = fixture().await;
    fixture.put("work", "step 1").await;
    let got = get(&fixture, 30).await;
    let updated = fixture.ask("PUT", &format!("{}&visibilitytimeout=0", at(&got)), &message("step 2")).await;
    assert_eq!(updated.status, 204);
    assert!(updated.headers.contains_key("x-ms-time-next-visible"));
    let peeked = fixture.ask("GET", "/shop/work/messages?peekonly=true", "").await;
    assert_eq!((peeked.text("MessageText"), peeked.text("DequeueCount")), ("step 2", "1"));
    assert!(peeked.texts("PopReceipt").is_empty());
    let late = fixture.ask("PUT", &format!("{}&visibilitytimeout=0", at(&got)), "").await;
    assert_eq!(late.code(), "PopReceiptMismatch");
}

#[tokio::test]
async fn the_receipt_of_a_put_deletes_what_nobody_got() {
    let fixture = fixture().await;
    let put = fixture.put("work", "a").await;
    assert_eq!(fixture.ask("DELETE", &at(&put), "").await.status, 204);
    let hidden = fixture.ask("POST", "/shop/work/messages?visibilitytimeout=60", &message("b")).await;
    assert_eq!(fixture.ask("DELETE", &at(&hidden), "").await.status, 204);
    let put = fixture.put("work", "c").await;
    get(&fixture, 30).await;
    assert_eq!(fixture.ask("DELETE", &at(&put), "").await.code(), "PopReceiptMismatch");
}

#[tokio::test]
async fn a_message_put_hidden_is_visible_at_its_time_and_expires_at_its_own() {
    let fixture = fixture().await;
    let path = "/shop/work/messages?visibilitytimeout=10&messagettl=30";
    fixture.ask("POST", path, &message("a")).await;
    assert!(get(&fixture, 1).await.texts("QueueMessage").is_empty());
    fixture.pass(10);
    assert_eq!(get(&fixture, 1).await.texts("QueueMessage").len(), 1);
    fixture.pass(20);
    assert!(get(&fixture, 1).await.texts("QueueMessage").is_empty(), "30 seconds since it was put");
    let refused =
        fixture.ask("POST", "/shop/work/messages?visibilitytimeout=30&messagettl=30", &message("a")).await;
    assert_eq!(refused.code(), "OutOfRangeQueryParameterValue");
}

#[tokio::test]
async fn what_is_out_of_range_missing_or_no_message_is_refused_by_name() {
    let fixture = fixture().await;
    let got = {
        fixture.put("work", "a").await;
        get(&fixture, 30).await
    };
    let big = message(&"x".repeat(65_537));
    let (update, delete) = (at(&got), at(&got).replace(got.text("PopReceipt"), "AgAAAAM="));
    for (method, path, body, code) in [
        ("GET", "/shop/work/messages?numofmessages=33", "", "OutOfRangeQueryParameterValue"),
        ("GET", "/shop/work/messages?numofmessages=0", "", "OutOfRangeQueryParameterValue"),
        ("GET", "/shop/work/messages?visibilitytimeout=0", "", "OutOfRangeQueryParameterValue"),
        ("GET", "/shop/work/messages?visibilitytimeout=604801", "", "OutOfRangeQueryParameterValue"),
        ("POST", "/shop/work/messages?messagettl=0", "", "OutOfRangeQueryParameterValue"),
        ("POST", "/shop/work/messages", "", "InvalidXmlDocument"),
        ("POST", "/shop/work/messages", "<a/>", "InvalidXmlDocument"),
        ("POST", "/shop/work/messages", &big, "MessageTooLarge"),
        ("POST", "/shop/nowhere/messages", &message("a"), "QueueNotFound"),
        ("GET", "/shop/nowhere/messages", "", "QueueNotFound"),
        ("GET", "/shop/Not_A_Name/messages", "", "InvalidResourceName"),
        ("PUT", &update, "", "MissingRequiredQueryParameter"),
        ("DELETE", &delete, "", "PopReceiptMismatch"),
        ("DELETE", "/shop/work/messages/x?popreceipt=1", "", "MessageNotFound"),
        ("PATCH", "/shop/work/messages", "", "UnsupportedHttpVerb"),
        ("GET", "/shop/work/x/y/z", "", "ResourceNotFound"),
        ("GET", "/", "", "ResourceNotFound"),
    ] {
        let refused = fixture.ask(method, path, body).await;
        assert_eq!(refused.code(), code, "{method} {path}: {refused:?}");
        assert_eq!(refused.text("Code"), code);
    }
}

#[tokio::test]
async fn a_body_that_xml_cannot_tell_is_told_in_base64() {
    let fixture = fixture().await;
    let queue = fixture.engine.client().queue("work").unwrap();
    queue.send(crate::message::Message::new(&b"\x00\xff"[..])).await.unwrap();
    assert_eq!(get(&fixture, 30).await.text("MessageText"), "AP8=");
}

#[tokio::test]
async fn a_time_to_live_has_no_upper_bound() {
    let fixture = fixture().await;
    for (lasts, expires) in
        [("2147483647", "20"), ("4294967295", "9999"), ("99999999999999999999", "9999"), ("-1", "9999")]
    {
        let put =
            fixture.ask("POST", &format!("/shop/work/messages?messagettl={lasts}"), &message("a")).await;
        assert_eq!(put.status, 201, "{lasts}: {put:?}");
        assert!(put.text("ExpirationTime").contains(expires), "{lasts}: {put:?}");
    }
    for lasts in ["0", "-2", "1.5", ""] {
        let put =
            fixture.ask("POST", &format!("/shop/work/messages?messagettl={lasts}"), &message("a")).await;
        assert_eq!(put.code(), "OutOfRangeQueryParameterValue", "{lasts}");
    }
}
