"""What a storage queue accepted is there after the daemon was killed."""
import time

from azure.core.exceptions import HttpResponseError
from azure.storage.queue import QueueServiceClient

from stage import STORAGE, kill, play, promise

service = QueueServiceClient.from_connection_string(STORAGE)


@promise
def what_was_answered_survives():
    queue = service.create_queue("durable", metadata={"purpose": "tests"})
    for body in ["deleted", "updated", "left"]:
        queue.send_message(body)
    queue.delete_message(queue.receive_message())
    message = queue.receive_message(visibility_timeout=600)
    queue.update_message(message, visibility_timeout=0, content="step 2")
    kill()
    assert queue.get_queue_properties().metadata == {"purpose": "tests"}
    received = list(queue.receive_messages())
    assert [(message.content, message.dequeue_count) for message in received] == [("step 2", 2), ("left", 1)], received


@promise
def a_message_that_was_hidden_stays_hidden_and_its_receipt_good():
    queue = service.create_queue("hidden")
    queue.send_message("a", visibility_timeout=0)
    queue.send_message("b", visibility_timeout=600)
    message = queue.receive_message(visibility_timeout=600)
    kill()
    assert queue.receive_message() is None
    updated = queue.update_message(message, visibility_timeout=600)
    queue.delete_message(updated)
    try:
        queue.delete_message(updated)
        raise AssertionError("a message was deleted twice")
    except HttpResponseError as error:
        assert error.error_code == "MessageNotFound", error.error_code


@promise
def a_hidden_message_is_visible_at_its_time_although_the_daemon_was_killed():
    queue = service.create_queue("timely")
    queue.send_message("a")
    message = queue.receive_message(visibility_timeout=2)
    kill()
    until = time.monotonic() + 10
    while (again := queue.receive_message(visibility_timeout=60)) is None:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert (again.id, again.dequeue_count) == (message.id, 2)
    try:
        queue.delete_message(message)
        raise AssertionError("an old pop receipt deleted")
    except HttpResponseError as error:
        assert error.error_code == "PopReceiptMismatch", error.error_code


play()
