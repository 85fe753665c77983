"""Receiving and looking from the same queue: what is not taken, and who may settle what was."""
import time

from azure.servicebus import ServiceBusClient, ServiceBusMessage

from stage import SERVICE_BUS, play, promise, queue, short

# Retries of the client would only hide what it was told.
client = ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0)


def send(name, *bodies):
    with client.get_queue_sender(name) as sender:
        sender.send_messages([ServiceBusMessage(body) for body in bodies])


def receive(receiver, count):
    """Receives and completes as many; each was never counted."""
    received = []
    while len(received) < count:
        messages = receiver.receive_messages(count - len(received), max_wait_time=10)
        assert messages, f"only {received}"
        for message in messages:
            assert message.delivery_count == 0, message.delivery_count
            received.append(str(message))
            receiver.complete_message(message)
    return received


@promise
def what_arrives_while_nobody_receives_is_given_back_uncounted():
    # The client looks every five seconds whether something has come that nobody waits for.
    name = queue(**short("7s"))
    with client.get_queue_receiver(name) as receiver:
        send(name, "1", "2", "3")
        received = []
        while len(received) < 3:
            # It asks for more than there are, so what is sent later comes at once.
            for message in receiver.receive_messages(10, max_wait_time=5):
                received.append(str(message))
                receiver.complete_message(message)
        send(name, "4", "5", "6")
        time.sleep(8)
        assert receive(receiver, 3) == ["4", "5", "6"]


@promise
def an_iterator_within_another_loses_no_message_and_counts_none():
    name = queue(**short("2s"))
    send(name, *map(str, range(5)))
    with client.get_queue_receiver(name, max_wait_time=2) as receiver:
        received = []
        for message in receiver:
            assert message.delivery_count == 0, message.delivery_count
            received.append(str(message))
            receiver.complete_message(message)
            if len(received) == 1:
                received += receive(receiver, 4)
                send(name, *map(str, range(5, 15)))
                time.sleep(3)
                received += receive(receiver, 5)
        assert received == [str(number) for number in range(15)], received


@promise
def a_peek_at_an_empty_queue_shows_nothing():
    name = queue()
    with client.get_queue_receiver(name) as receiver:
        assert receiver.peek_messages(10) == []
        send(name, "a")
        assert [str(message) for message in receiver.peek_messages(10)] == ["a"]


@promise
def a_peek_after_some_were_completed_shows_the_next():
    name = queue()
    send(name, *map(str, range(6)))
    with client.get_queue_receiver(name) as receiver:
        first = receiver.peek_messages(1)
        assert [str(message) for message in first] == ["0"]
        assert receive(receiver, 3) == ["0", "1", "2"]
        assert [str(message) for message in receiver.peek_messages(1)] == ["3"]
        assert [str(message) for message in receiver.peek_messages(5)] == ["4", "5"]
    with client.get_queue_receiver(name) as receiver:
        assert [str(message) for message in receiver.peek_messages(10)] == ["3", "4", "5"]


@promise
def a_message_is_completed_by_another_receiver_than_the_one_that_got_it():
    name = queue(**short("2s"))
    send(name, "a")
    with client.get_queue_receiver(name) as receiver:
        [message] = receiver.receive_messages(1, max_wait_time=10)
    with client.get_queue_receiver(name) as other:
        other.complete_message(message)
        time.sleep(2.5)
        assert other.receive_messages(1, max_wait_time=0.5) == []


play()
