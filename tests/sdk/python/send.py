"""What is sent: big messages, messages that come twice, messages that expire."""
import time
from datetime import timedelta

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusSubQueue
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
    from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageBodyType

    name = queue()
    bodies = [{"value_body": {b"a": 1}}, {"sequence_body": [[1, b"x"], [2]]}, {"data_body": [b"one", b"two"]}]
    with client.get_queue_sender(name) as sender:
        sender.send_messages([AmqpAnnotatedMessage(**body) for body in bodies])
    kinds = [message.body_type for message in receive_all(name)]
    assert kinds == [AmqpMessageBodyType.VALUE, AmqpMessageBodyType.SEQUENCE, AmqpMessageBodyType.DATA], kinds


play()
