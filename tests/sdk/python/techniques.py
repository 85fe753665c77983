"""Techniques that people build on Service Bus, as they write them."""
import time
from datetime import datetime, timedelta, timezone

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusSubQueue

from stage import SERVICE_BUS, play, promise, queue, short

client = ServiceBusClient.from_connection_string(SERVICE_BUS)


def in_seconds(seconds):
    return datetime.now(timezone.utc) + timedelta(seconds=seconds)


@promise
def sleep_while_renewing_and_then_abandon():
    name = queue(**short("2s"))
    with client.get_queue_sender(name) as sender, client.get_queue_receiver(name) as receiver:
        sender.send_messages(ServiceBusMessage("a"))
        [message] = receiver.receive_messages(1, max_wait_time=10)
        failed = time.monotonic()
        for _ in range(4):
            time.sleep(0.8)
            receiver.renew_message_lock(message)
        receiver.abandon_message(message)
        [again] = receiver.receive_messages(1, max_wait_time=10)
        assert again.delivery_count == 1 and time.monotonic() - failed >= 3.2
        receiver.complete_message(again)


@promise
def defer_and_schedule_a_message_that_carries_the_number():
    name, reminders = queue(), queue()
    with client.get_queue_sender(name) as sender, client.get_queue_receiver(name) as receiver, \
            client.get_queue_sender(reminders) as remind, client.get_queue_receiver(reminders) as reminded:
        sender.send_messages(ServiceBusMessage("a"))
        [message] = receiver.receive_messages(1, max_wait_time=10)
        receiver.defer_message(message)
        remind.schedule_messages(ServiceBusMessage(str(message.sequence_number)), in_seconds(1))
        [reminder] = reminded.receive_messages(1, max_wait_time=10)
        [deferred] = receiver.receive_deferred_messages(int(str(reminder)))
        assert str(deferred) == "a"
        receiver.complete_message(deferred)
        reminded.complete_message(reminder)


def resubmit(message, **properties):
    """The clone of a message, with more properties."""
    return ServiceBusMessage(b"".join(message.body), message_id=message.message_id,
                             application_properties={**(message.application_properties or {}), **properties})


@promise
def clone_schedule_and_complete_until_it_was_resubmitted_too_often():
    name = queue()
    with client.get_queue_sender(name) as sender, client.get_queue_receiver(name) as receiver:
        sender.send_messages(ServiceBusMessage("a"))
        for attempt in range(4):
            [message] = receiver.receive_messages(1, max_wait_time=10)
            count = (message.application_properties or {}).get(b"resubmit", 0)
            assert count == attempt and message.delivery_count == 0, message
            if count == 3:
                receiver.dead_letter_message(message, reason="resubmitted too often")
                break
            sender.schedule_messages(resubmit(message, resubmit=count + 1), in_seconds(0.3))
            receiver.complete_message(message)
        with client.get_queue_receiver(name, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as letters:
            [letter] = letters.receive_messages(1, max_wait_time=10)
            assert (str(letter), letter.dead_letter_reason) == ("a", "resubmitted too often")


@promise
def retry_with_exponential_backoff_and_a_counter():
    name = queue()
    handled = []
    with client.get_queue_sender(name) as sender, client.get_queue_receiver(name) as receiver:
        sender.send_messages(ServiceBusMessage("a"))
        for attempt in range(4):
            [message] = receiver.receive_messages(1, max_wait_time=10)
            handled.append(time.monotonic())
            delay = 0.4 * 2 ** attempt
            if attempt < 3:
                sender.schedule_messages(resubmit(message, attempt=attempt + 1), in_seconds(delay))
            receiver.complete_message(message)
    waits = [after - before for before, after in zip(handled, handled[1:])]
    assert all(wait >= 0.4 * 2 ** attempt for attempt, wait in enumerate(waits)), waits


@promise
def work_alone_under_a_lock_renewed_at_70_percent():
    name = queue(**short("2s"))
    with client.get_queue_sender(name) as sender, client.get_queue_receiver(name) as receiver, \
            client.get_queue_receiver(name) as other:
        sender.send_messages(ServiceBusMessage("the only token"))
        [message] = receiver.receive_messages(1, max_wait_time=10)
        until = time.monotonic() + 5
        while time.monotonic() < until:
            left = (message.locked_until_utc - datetime.now(timezone.utc)).total_seconds()
            assert other.receive_messages(1, max_wait_time=max(left * 0.7, 0.1)) == []
            receiver.renew_message_lock(message)
        receiver.complete_message(message)


play()
