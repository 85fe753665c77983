"""What is sent: big messages, messages that come twice, messages that expire."""
import time
from datetime import timedelta

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusSubQueue
from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageBodyType
from azure.servicebus.exceptions import MessageSizeExceededError

import stage
from stage import SERVICE_BUS, play, promise, queue

client = ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0)


def receive_all(name, **options):
    return stage.receive_all(client, name, 0.5, **options)


@promise
def a_big_message_arrives_whole():
    name = queue()
    body = bytes(range(256)) * 3_600
    with client.get_queue_sender(name) as sender:
        sender.send_messages(ServiceBusMessage(body))
    [message] = receive_all(name)
    assert b"".join(message.body) == body


@promise
def a_message_that_is_too_big_is_refused():
    name = queue()
    with client.get_queue_sender(name) as sender:
        try:
            sender.send_messages(ServiceBusMessage(b"x" * 3_000_000))
            raise AssertionError("it was accepted")
        except MessageSizeExceededError:
            pass
    assert receive_all(name) == []


@promise
def a_message_sent_twice_within_the_window_is_accepted_once():
    name = queue(duplicates={"window": "10m"})
    with client.get_queue_sender(name) as sender:
        for body in ["first", "again"]:
            sender.send_messages(ServiceBusMessage(body, message_id="m-1"))
        sender.send_messages(ServiceBusMessage("other", message_id="m-2"))
    assert [str(message) for message in receive_all(name)] == ["first", "other"]


@promise
def an_expired_message_is_a_dead_letter():
    name = queue()
    with client.get_queue_sender(name) as sender:
        sender.send_messages(ServiceBusMessage("old", time_to_live=timedelta(seconds=1)))
    time.sleep(1.3)
    assert receive_all(name) == []
    [letter] = receive_all(name, sub_queue=ServiceBusSubQueue.DEAD_LETTER)
    assert letter.dead_letter_reason == "TTLExpiredException", letter.dead_letter_reason


@promise
def bodies_of_every_kind_arrive_as_they_were():
    name = queue()
    bodies = [{"value_body": {b"a": 1}}, {"sequence_body": [[1, b"x"], [2]]}, {"data_body": [b"one", b"two"]}]
    with client.get_queue_sender(name) as sender:
        sender.send_messages([AmqpAnnotatedMessage(**body) for body in bodies])
    kinds = [message.body_type for message in receive_all(name)]
    assert kinds == [AmqpMessageBodyType.VALUE, AmqpMessageBodyType.SEQUENCE, AmqpMessageBodyType.DATA], kinds


@promise
def a_message_without_a_body_arrives_without_one():
    name = queue()
    with client.get_queue_sender(name) as sender:
        sender.send_messages(ServiceBusMessage(body=None, subject="nothing"))
    [message] = receive_all(name)
    assert (message.body, message.body_type) == (None, AmqpMessageBodyType.VALUE), message.body_type
    assert message.subject == "nothing"


@promise
def what_was_sent_is_sent_again_as_another_message():
    name = queue()
    with client.get_queue_sender(name) as sender:
        batch = sender.create_message_batch()
        batch.add_message(ServiceBusMessage("1"))
        batch.add_message(ServiceBusMessage("2"))
        sender.send_messages(batch)
        sender.send_messages(batch)
        message = ServiceBusMessage("3")
        sender.send_messages(message)
        sender.send_messages(message)
        with client.get_queue_receiver(name) as receiver:
            received = []
            while len(received) < 6:
                for message in receiver.receive_messages(6, max_wait_time=10):
                    received.append(message)
                    receiver.complete_message(message)
        assert [str(message) for message in received] == ["1", "2", "1", "2", "3", "3"], received
        assert len({message.sequence_number for message in received}) == 6
        sender.send_messages(received[0])
    assert [str(message) for message in receive_all(name)] == ["1"]


play()
