"""Deferred messages: received by their numbers, in a queue and in a session, and settled in each way."""
from azure.servicebus import (
    ServiceBusClient, ServiceBusMessage, ServiceBusMessageState, ServiceBusReceiveMode, ServiceBusSubQueue)
from azure.servicebus.exceptions import MessageNotFoundError

from stage import SERVICE_BUS, play, promise, queue, receive_all

# Retries of the client would only delay what it was told.
client = ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0)


def send(name, *bodies, session=None):
    with client.get_queue_sender(name) as sender:
        sender.send_messages([ServiceBusMessage(body, session_id=session) for body in bodies])


def defer(receiver, count):
    """Defers the next messages, and tells their numbers."""
    numbers = []
    while len(numbers) < count:
        for message in receiver.receive_messages(count - len(numbers), max_wait_time=10):
            receiver.defer_message(message)
            numbers.append(message.sequence_number)
    return numbers


def not_found(receiver, numbers):
    try:
        receiver.receive_deferred_messages(numbers)
    except MessageNotFoundError:
        return
    raise AssertionError("what is gone was received")


def dead_letters(name):
    letters = receive_all(client, name, 1, sub_queue=ServiceBusSubQueue.DEAD_LETTER)
    return [(str(letter), letter.dead_letter_reason, letter.dead_letter_error_description) for letter in letters]


@promise
def a_deferred_message_says_that_it_is_deferred_to_who_receives_and_to_who_looks():
    name = queue()
    send(name, "a")
    with client.get_queue_receiver(name) as receiver:
        [number] = defer(receiver, 1)
        [peeked] = receiver.peek_messages(1, sequence_number=number)
        assert (peeked.sequence_number, peeked.state) == (number, ServiceBusMessageState.DEFERRED), peeked.state
        [deferred] = receiver.receive_deferred_messages(number)
        assert deferred.state == ServiceBusMessageState.DEFERRED, deferred.state
        receiver.complete_message(deferred)


@promise
def deferred_messages_are_dead_lettered_with_their_reasons():
    name = queue()
    send(name, *map(str, range(10)))
    with client.get_queue_receiver(name) as receiver:
        numbers = defer(receiver, 10)
        deferred = receiver.receive_deferred_messages(numbers)
        assert [str(message) for message in deferred] == [str(number) for number in range(10)], deferred
        for message in deferred:
            receiver.dead_letter_message(message, reason="late", error_description=f"is {message}")
        not_found(receiver, numbers)
    assert dead_letters(name) == [(str(number), "late", f"is {number}") for number in range(10)]


@promise
def messages_deferred_in_a_session_are_dead_lettered_by_its_holder():
    name = queue()
    send(name, "1", "2", "3", session="s")
    with client.get_queue_receiver(name, session_id="s") as receiver:
        numbers = defer(receiver, 3)
        for message in receiver.receive_deferred_messages(numbers):
            receiver.dead_letter_message(message, reason="late", error_description="too late")
        not_found(receiver, numbers)
        assert receiver.receive_messages(1, max_wait_time=0.5) == []
    assert dead_letters(name) == [(body, "late", "too late") for body in "123"]


@promise
def messages_deferred_in_a_session_are_completed_by_its_next_holder():
    name = queue()
    send(name, "1", "2", "3", session="s")
    with client.get_queue_receiver(name, session_id="s") as receiver:
        numbers = defer(receiver, 3)
    with client.get_queue_receiver(name, session_id="s") as receiver:
        deferred = receiver.receive_deferred_messages(numbers)
        assert [(str(message), message.session_id) for message in deferred] == [(body, "s") for body in "123"]
        for message in deferred:
            assert message.lock_token and message.sequence_number in numbers
            receiver.complete_message(message)
        not_found(receiver, numbers)


@promise
def messages_deferred_in_a_session_are_received_and_deleted_by_its_next_holder():
    name = queue()
    send(name, "1", "2", "3", session="s")
    with client.get_queue_receiver(name, session_id="s") as receiver:
        numbers = defer(receiver, 3)
    mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
    with client.get_queue_receiver(name, session_id="s", receive_mode=mode) as receiver:
        deferred = receiver.receive_deferred_messages(numbers)
        assert [str(message) for message in deferred] == ["1", "2", "3"], deferred
        not_found(receiver, numbers)
        assert receiver.receive_messages(1, max_wait_time=0.5) == []


play()
