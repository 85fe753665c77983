"""Messages for later: in a session, by their own property, several at once, cancelled."""
from datetime import datetime, timedelta, timezone

from azure.servicebus import ServiceBusClient, ServiceBusMessage

from stage import SERVICE_BUS, play, promise, queue

client = ServiceBusClient.from_connection_string(SERVICE_BUS)


def soon():
    """An instant that is a whole second, as a client may say it, and soon."""
    return (datetime.now(timezone.utc) + timedelta(seconds=3)).replace(microsecond=0)


def receive(receiver, count):
    received = []
    while len(received) < count:
        messages = receiver.receive_messages(count - len(received), max_wait_time=10)
        assert messages, f"only {received}"
        received += messages
        for message in messages:
            receiver.complete_message(message)
    return received


def check(messages, bodies, due):
    """They came when they were due, and say so."""
    assert datetime.now(timezone.utc) >= due
    assert [str(message) for message in messages] == bodies, messages
    for message in messages:
        assert message.scheduled_enqueue_time_utc == due, message.scheduled_enqueue_time_utc
        # It is enqueued when it is due, not when it was sent.
        late = message.enqueued_time_utc - due
        assert timedelta() <= late < timedelta(seconds=1), late


@promise
def a_message_of_a_session_that_says_when_it_is_for_comes_then():
    name, due = queue(), soon()
    with client.get_queue_receiver(name, session_id="s") as receiver, client.get_queue_sender(name) as sender:
        sender.send_messages(ServiceBusMessage(
            "a", session_id="s", message_id="m", scheduled_enqueue_time_utc=due))
        messages = receive(receiver, 1)
        check(messages, ["a"], due)
        assert (messages[0].message_id, messages[0].session_id) == ("m", "s")


@promise
def messages_of_a_session_that_are_scheduled_together_come_when_they_are_due():
    name, due = queue(), soon()
    with client.get_queue_receiver(name, session_id="s", prefetch_count=20) as receiver:
        with client.get_queue_sender(name) as sender:
            numbers = sender.schedule_messages(
                [ServiceBusMessage(body, session_id="s", message_id=body) for body in "ab"], due)
            assert len(set(numbers)) == 2, numbers
        messages = receive(receiver, 2)
        check(messages, ["a", "b"], due)
        assert [message.message_id for message in messages] == ["a", "b"]


@promise
def a_message_of_a_queue_says_that_it_was_enqueued_when_it_was_due():
    name, due = queue(), soon()
    with client.get_queue_receiver(name) as receiver, client.get_queue_sender(name) as sender:
        sender.send_messages(ServiceBusMessage("a", scheduled_enqueue_time_utc=due))
        sender.schedule_messages(ServiceBusMessage("b"), due)
        check(receive(receiver, 2), ["a", "b"], due)


@promise
def messages_of_a_session_that_are_cancelled_never_come():
    name, due = queue(), soon()
    with client.get_queue_receiver(name, session_id="s") as receiver, client.get_queue_sender(name) as sender:
        numbers = sender.schedule_messages([ServiceBusMessage(body, session_id="s") for body in "abc"], due)
        sender.cancel_scheduled_messages(numbers[:2])
        assert [str(message) for message in receive(receiver, 1)] == ["c"]
        assert receiver.receive_messages(1, max_wait_time=0.5) == []


play()
