"""Sending, receiving and settling, with the synchronous client."""
import time
from datetime import datetime, timedelta, timezone

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode, ServiceBusSubQueue
from azure.servicebus.exceptions import MessageLockLostError, MessageNotFoundError

from stage import SERVICE_BUS, play, promise, queue, short

client = ServiceBusClient.from_connection_string(SERVICE_BUS)
# Retries of the client would only delay what it was told.
hasty = ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0)


def send(name, *bodies, **fields):
    with client.get_queue_sender(name) as sender:
        sender.send_messages([ServiceBusMessage(body, **fields) for body in bodies])


def empty(name, **options):
    with client.get_queue_receiver(name, **options) as receiver:
        return receiver.receive_messages(1, max_wait_time=0.5) == []


@promise
def a_message_that_is_sent_is_received_as_it_was():
    name = queue()
    with client.get_queue_sender(name) as sender:
        sender.send_messages(ServiceBusMessage(
            b"\x00hello\xff", message_id="m-1", subject="greeting", correlation_id="c", content_type="text/x",
            reply_to="back", to="there", application_properties={"number": 7, "text": "x", "yes": True}))
    with client.get_queue_receiver(name) as receiver:
        [message] = receiver.receive_messages(1, max_wait_time=10)
        assert b"".join(message.body) == b"\x00hello\xff"
        assert message.message_id == "m-1" and message.subject == "greeting" and message.correlation_id == "c"
        assert message.content_type == "text/x" and message.reply_to == "back" and message.to == "there"
        assert message.application_properties == {b"number": 7, b"text": b"x", b"yes": True}, message.application_properties
        assert message.delivery_count == 0 and message.sequence_number > 0
        assert abs((message.enqueued_time_utc - datetime.now(timezone.utc)).total_seconds()) < 60
        receiver.complete_message(message)


@promise
def a_completed_message_is_gone():
    name = queue(**short())
    send(name, "a")
    with client.get_queue_receiver(name) as receiver:
        [message] = receiver.receive_messages(1, max_wait_time=10)
        receiver.complete_message(message)
        time.sleep(1.2)
        assert receiver.receive_messages(1, max_wait_time=0.5) == []


@promise
def a_batch_arrives_whole_and_in_order():
    name = queue()
    with client.get_queue_sender(name) as sender:
        batch = sender.create_message_batch()
        for number in range(100):
            batch.add_message(ServiceBusMessage(str(number)))
        sender.send_messages(batch)
    received = []
    with client.get_queue_receiver(name) as receiver:
        while len(received) < 100:
            messages = receiver.receive_messages(20, max_wait_time=10)
            assert messages, f"only {received}"
            received += [int(str(message)) for message in messages]
            for message in messages:
                receiver.complete_message(message)
    assert received == list(range(100)), received


@promise
def receive_and_delete_leaves_nothing_behind():
    name = queue(**short())
    send(name, "a", "b")
    with client.get_queue_receiver(name, receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as receiver:
        assert [str(message) for message in receiver.receive_messages(2, max_wait_time=10)] == ["a", "b"]
    assert empty(name)


@promise
def what_is_prefetched_is_received_in_order():
    name = queue()
    send(name, *map(str, range(10)))
    with client.get_queue_receiver(name, prefetch_count=10, max_wait_time=2) as receiver:
        received = []
        for message in receiver:
            received.append(int(str(message)))
            receiver.complete_message(message)
            if len(received) == 10:
                break
    assert received == list(range(10)), received


@promise
def a_peek_takes_nothing():
    name = queue()
    send(name, "a", "b")
    with client.get_queue_receiver(name) as receiver:
        peeked = receiver.peek_messages(10)
        assert [str(message) for message in peeked] == ["a", "b"]
        assert [str(message) for message in receiver.peek_messages(1, sequence_number=peeked[1].sequence_number)] == ["b"]
        assert len(receiver.receive_messages(2, max_wait_time=10)) == 2


@promise
def an_abandoned_message_comes_again_at_once_and_is_counted():
    name = queue()
    send(name, "a", "b")
    with client.get_queue_receiver(name) as receiver:
        for count in range(3):
            [message] = receiver.receive_messages(1, max_wait_time=10)
            assert (str(message), message.delivery_count) == ("a", count), message
            receiver.abandon_message(message)


@promise
def a_dead_letter_is_in_the_dead_letter_queue_with_its_reason():
    name = queue()
    send(name, "a", application_properties={"kept": "yes"})
    with client.get_queue_receiver(name) as receiver:
        [message] = receiver.receive_messages(1, max_wait_time=10)
        receiver.dead_letter_message(message, reason="bad", error_description="it has no number")
    with client.get_queue_receiver(name, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        [letter] = receiver.receive_messages(1, max_wait_time=10)
        assert (str(letter), letter.dead_letter_reason) == ("a", "bad"), letter
        assert letter.dead_letter_error_description == "it has no number"
        assert letter.application_properties[b"kept"] == b"yes"
        receiver.complete_message(letter)
    assert empty(name, sub_queue=ServiceBusSubQueue.DEAD_LETTER)


@promise
def a_deferred_message_is_received_by_number_and_in_no_other_way():
    name = queue()
    send(name, "a", "b")
    with hasty.get_queue_receiver(name) as receiver:
        [message] = receiver.receive_messages(1, max_wait_time=10)
        receiver.defer_message(message)
        [other] = receiver.receive_messages(1, max_wait_time=10)
        assert str(other) == "b"
        receiver.complete_message(other)
        assert receiver.receive_messages(1, max_wait_time=0.5) == []
        [deferred] = receiver.receive_deferred_messages(message.sequence_number)
        assert (str(deferred), deferred.delivery_count) == ("a", 1), deferred
        receiver.complete_message(deferred)
        try:
            receiver.receive_deferred_messages(message.sequence_number)
        except MessageNotFoundError:
            return
        raise AssertionError("a message that is gone was received")


@promise
def a_scheduled_message_comes_when_it_is_due_and_a_cancelled_one_never():
    name = queue()
    with client.get_queue_sender(name) as sender, client.get_queue_receiver(name) as receiver:
        due = datetime.now(timezone.utc) + timedelta(seconds=1.5)
        numbers = sender.schedule_messages([ServiceBusMessage("a"), ServiceBusMessage("b")], due)
        assert len(numbers) == 2
        sender.cancel_scheduled_messages(numbers[1])
        [message] = receiver.receive_messages(1, max_wait_time=10)
        assert str(message) == "a" and datetime.now(timezone.utc) >= due
        receiver.complete_message(message)
        assert receiver.receive_messages(1, max_wait_time=0.5) == []


@promise
def of_messages_that_are_cancelled_together_one_that_is_gone_keeps_none_of_the_others():
    name = queue()
    later = datetime.now(timezone.utc) + timedelta(hours=1)
    with hasty.get_queue_sender(name) as sender:
        numbers = sender.schedule_messages([ServiceBusMessage(str(at)) for at in range(600)], later)
        try:
            sender.cancel_scheduled_messages([numbers[0], 999_999, *numbers[1:]])
            raise AssertionError("a message that was never there was cancelled")
        except MessageNotFoundError:
            pass
        for number in (numbers[0], numbers[300], numbers[-1]):
            try:
                sender.cancel_scheduled_messages(number)
                raise AssertionError("a message was not cancelled")
            except MessageNotFoundError:
                pass


@promise
def a_renewed_lock_lasts_longer():
    name = queue(**short())
    send(name, "a")
    with client.get_queue_receiver(name) as receiver:
        [message] = receiver.receive_messages(1, max_wait_time=10)
        for _ in range(4):
            time.sleep(0.5)
            before = message.locked_until_utc
            assert receiver.renew_message_lock(message) > before
        receiver.complete_message(message)
    assert empty(name)


@promise
def a_lost_lock_cannot_complete():
    name = queue(**short())
    send(name, "a")
    with client.get_queue_receiver(name) as receiver:
        [message] = receiver.receive_messages(1, max_wait_time=10)
        [again] = receiver.receive_messages(1, max_wait_time=10)
        assert again.delivery_count == 1
        try:
            receiver.complete_message(message)
            raise AssertionError("a lost lock completed")
        except MessageLockLostError:
            receiver.complete_message(again)


play()
