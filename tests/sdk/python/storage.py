"""Storage queues: queues, messages, and pop receipts, with the synchronous client."""
import time
from datetime import datetime, timedelta, timezone

from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.queue import (
    AccessPolicy, AccountSasPermissions, BinaryBase64DecodePolicy, BinaryBase64EncodePolicy, CorsRule, Metrics,
    QueueAnalyticsLogging, QueueClient, QueueSasPermissions, QueueServiceClient, ResourceTypes, RetentionPolicy,
    generate_account_sas, generate_queue_sas,
)

from stage import ACCOUNT, ACCOUNT_KEY, STORAGE, play, promise

service = QueueServiceClient.from_connection_string(STORAGE, retry_total=0)


def made(name, **metadata):
    return service.create_queue(name, metadata=metadata or None)


def refused_with(code, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except HttpResponseError as error:
        assert error.error_code == code, (error.error_code, code)
        return error
    raise AssertionError(f"it was not refused with {code}")


@promise
def queues_are_made_listed_and_deleted():
    for name in ["list-a", "list-b", "other"]:
        made(name, purpose=name)
    listed = list(service.list_queues(name_starts_with="list-", include_metadata=True))
    assert [(queue.name, queue.metadata) for queue in listed] == [
        ("list-a", {"purpose": "list-a"}), ("list-b", {"purpose": "list-b"})], listed
    pages = service.list_queues(name_starts_with="list-", results_per_page=1).by_page()
    assert [[queue.name for queue in page] for page in pages] == [["list-a"], ["list-b"]]
    for purpose in ["list-a", "another"]:  # this SDK takes even the same again for a conflict
        refused_with("QueueAlreadyExists", made, "list-a", purpose=purpose)
    service.delete_queue("list-a")
    assert [queue.name for queue in service.list_queues(name_starts_with="list-")] == ["list-b"]
    refused_with("QueueNotFound", service.delete_queue, "list-a")


@promise
def metadata_is_kept():
    queue = made("told", purpose="tests")
    assert queue.get_queue_properties().metadata == {"purpose": "tests"}
    queue.set_queue_metadata({"purpose": "more", "second": "2"})
    queue.send_message("a")
    properties = queue.get_queue_properties()
    assert properties.metadata == {"purpose": "more", "second": "2"} and properties.approximate_message_count == 1


@promise
def a_message_is_received_as_it_was_and_deleted():
    queue = made("work")
    sent = queue.send_message("hello <&> \u00fc")
    message = queue.receive_message()
    assert (message.id, message.content, message.dequeue_count) == (sent.id, "hello <&> \u00fc", 1), message
    assert message.expires_on - message.inserted_on == timedelta(days=7), message
    queue.delete_message(message)
    assert queue.receive_message() is None
    refused_with("MessageNotFound", queue.delete_message, message)


@promise
def bytes_travel_as_base64():
    made("binary")
    queue = QueueClient.from_connection_string(
        STORAGE, "binary", message_encode_policy=BinaryBase64EncodePolicy(),
        message_decode_policy=BinaryBase64DecodePolicy())
    queue.send_message(b"\x00\xff")
    assert queue.receive_message().content == b"\x00\xff"


@promise
def several_are_received_at_once_in_the_order_of_sending():
    queue = made("several")
    for number in range(40):
        queue.send_message(str(number))
    received = list(queue.receive_messages(messages_per_page=32, max_messages=40))
    assert [message.content for message in received] == [str(number) for number in range(40)]
    assert len({message.pop_receipt for message in received}) == 40


@promise
def a_peek_takes_nothing():
    queue = made("peeked")
    queue.send_message("a")
    queue.send_message("hidden", visibility_timeout=60)
    assert [(message.content, message.dequeue_count) for message in queue.peek_messages(32)] == [("a", 0)]
    assert queue.receive_message().content == "a"
    assert queue.peek_messages(32) == []


@promise
def a_message_is_hidden_for_as_long_as_each_asks():
    queue = made("hidden")
    queue.send_message("a", visibility_timeout=1)
    assert queue.receive_message() is None
    time.sleep(1.1)
    first = queue.receive_message(visibility_timeout=1)
    assert first.dequeue_count == 1 and queue.receive_message() is None
    time.sleep(1.1)
    second = queue.receive_message(visibility_timeout=3600)
    assert (second.id, second.dequeue_count) == (first.id, 2)
    assert second.next_visible_on - datetime.now(timezone.utc) > timedelta(minutes=59)


@promise
def a_pop_receipt_is_invalid_after_a_second_dequeue():
    queue = made("receipts")
    queue.send_message("a")
    first = queue.receive_message(visibility_timeout=1)
    time.sleep(1.1)
    second = queue.receive_message(visibility_timeout=60)
    refused_with("PopReceiptMismatch", queue.delete_message, first)
    refused_with("PopReceiptMismatch", queue.update_message, first, visibility_timeout=0)
    queue.delete_message(second)
    refused_with("MessageNotFound", queue.delete_message, second)


@promise
def an_update_keeps_place_and_count_and_changes_receipt_text_and_time():
    queue = made("updated")
    queue.send_message("a")
    queue.send_message("b")
    first = queue.receive_message(visibility_timeout=60)
    updated = queue.update_message(first, visibility_timeout=30, content="step 2")
    assert updated.pop_receipt != first.pop_receipt and updated.dequeue_count == 1, updated
    refused_with("PopReceiptMismatch", queue.update_message, first, visibility_timeout=0)
    again = queue.update_message(updated, visibility_timeout=0)  # as it is: the text stays
    [peeked] = [message for message in queue.peek_messages(32) if message.id == first.id]
    assert (peeked.content, peeked.dequeue_count) == ("step 2", 1), peeked
    # What was put back keeps its place before those sent later.
    received = queue.receive_message()
    assert (received.content, received.dequeue_count) == ("step 2", 2), received
    refused_with("PopReceiptMismatch", queue.delete_message, again)


@promise
def a_lease_is_renewed_and_progress_is_written_into_the_message():
    queue = made("lease")
    queue.send_message("0")
    message = queue.receive_message(visibility_timeout=1)
    for step in range(1, 5):
        time.sleep(0.5)
        message = queue.update_message(message, visibility_timeout=1, content=str(step))
    time.sleep(1.1)
    assert queue.receive_message().content == "4"


@promise
def a_message_expires():
    queue = made("expiring")
    queue.send_message("old", time_to_live=1)
    queue.send_message("forever", time_to_live=-1)
    time.sleep(1.2)
    assert [message.content for message in queue.peek_messages(32)] == ["forever"]
    assert queue.receive_message().content == "forever" and queue.receive_message() is None


@promise
def a_cleared_queue_is_empty():
    queue = made("cleared")
    for number in range(5):
        queue.send_message(str(number))
    held = queue.receive_message()
    queue.clear_messages()
    assert queue.peek_messages(32) == []
    refused_with("MessageNotFound", queue.delete_message, held)


@promise
def what_is_wrong_is_refused_with_its_code():
    queue = made("wrong")
    refused_with("MessageTooLarge", queue.send_message, "x" * 65537)
    refused_with("OutOfRangeQueryParameterValue", queue.receive_message, visibility_timeout=604801)
    refused_with("QueueNotFound", service.get_queue_client("nowhere").send_message, "a")
    refused_with("InvalidResourceName", service.create_queue, "Not_A_Name")
    refused_with("OutOfRangeInput", service.create_queue, "ab")
    queue.send_message("lasts", time_to_live=2**31 - 1)
    sent = queue.send_message("a")
    refused_with("MessageNotFound", queue.delete_message, "no-such-message", sent.pop_receipt)
    queue.send_message("x" * 65536)


@promise
def a_sender_can_delete_with_the_receipt_of_sending():
    queue = made("regretted")
    sent = queue.send_message("a")
    queue.delete_message(sent)
    assert queue.receive_message() is None


@promise
def a_wrong_key_is_refused():
    made("guarded").send_message("a")
    wrong = STORAGE.replace(ACCOUNT_KEY, "d3Jvbmc=")
    try:
        QueueClient.from_connection_string(wrong, "guarded", retry_total=0).receive_message()
        raise AssertionError("a wrong key was accepted")
    except ClientAuthenticationError as error:
        assert error.error_code == "AuthenticationFailed", error.error_code


@promise
def signatures_give_what_they_say_for_as_long_as_they_say():
    queue = made("signed")
    soon = datetime.now(timezone.utc) + timedelta(minutes=5)

    def signed(expiry=soon, **rights):
        token = generate_queue_sas(ACCOUNT, "signed", ACCOUNT_KEY, permission=QueueSasPermissions(**rights), expiry=expiry)
        return QueueClient.from_queue_url(queue.url, credential=token, retry_total=0)

    signed(add=True).send_message("a")
    assert signed(read=True).peek_messages()[0].content == "a"
    refused_with("AuthorizationPermissionMismatch", signed(read=True).receive_message)
    refused_with("AuthenticationFailed", signed(datetime.now(timezone.utc) - timedelta(minutes=5), read=True).peek_messages)
    assert signed(process=True).receive_message().content == "a"
    account = generate_account_sas(
        ACCOUNT, ACCOUNT_KEY, ResourceTypes(service=True, container=True, object=True), AccountSasPermissions(list=True), soon)
    by_account = QueueServiceClient(service.url, credential=account, retry_total=0)
    assert "signed" in [found.name for found in by_account.list_queues()]


@promise
def a_stored_access_policy_judges_the_signatures_that_name_it():
    queue = made("policed")
    assert queue.get_queue_access_policy() == {}
    until = datetime.now(timezone.utc) + timedelta(hours=1)
    queue.set_queue_access_policy({"door": AccessPolicy(permission=QueueSasPermissions(add=True), expiry=until)})
    [(name, policy)] = queue.get_queue_access_policy().items()
    assert (name, policy.permission) == ("door", "a") and policy.expiry[:19] == until.isoformat()[:19], policy.expiry
    token = generate_queue_sas(ACCOUNT, "policed", ACCOUNT_KEY, policy_id="door")
    by_policy = QueueClient.from_queue_url(queue.url, credential=token, retry_total=0)
    by_policy.send_message("a")
    refused_with("AuthorizationPermissionMismatch", by_policy.receive_message)
    queue.set_queue_access_policy({})
    refused_with("AuthenticationFailed", by_policy.send_message, "b")


@promise
def a_signature_for_https_is_no_use_over_http():
    queue = made("https-only")
    token = generate_queue_sas(
        ACCOUNT, "https-only", ACCOUNT_KEY, permission=QueueSasPermissions(add=True), protocol="https",
        expiry=datetime.now(timezone.utc) + timedelta(hours=1))
    refused_with(
        "AuthorizationProtocolMismatch", QueueClient.from_queue_url(queue.url, credential=token, retry_total=0).send_message, "a")


@promise
def service_properties_are_told_as_they_were_set():
    kept = RetentionPolicy(enabled=True, days=5)
    rule = CorsRule(["https://a.example"], ["GET", "PUT"], max_age_in_seconds=60, allowed_headers=["x-ms-meta-*"])
    service.set_service_properties(
        QueueAnalyticsLogging(delete=True, read=True, write=False, retention_policy=kept),
        Metrics(enabled=True, include_apis=True, retention_policy=kept), Metrics(enabled=False), [rule])
    service.set_service_properties(cors=[rule, rule])
    told = service.get_service_properties()
    logging, hours = told["analytics_logging"], told["hour_metrics"]
    assert (logging.delete, logging.read, logging.write, logging.retention_policy.days) == (True, True, False, 5)
    assert (hours.enabled, hours.include_apis, told["minute_metrics"].enabled) == (True, True, False)
    assert [found.allowed_methods for found in told["cors"]] == ["GET,PUT"] * 2, told["cors"]


play()
