"""What the samples of Microsoft's emulator do, against its file of queues: wait until all is well, make, send, receive."""
import json
import os
import time
import urllib.error
import urllib.request
from uuid import uuid4

from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.management import (
    CorrelationRuleFilter, ServiceBusAdministrationClient, SqlRuleAction, SqlRuleFilter)

from stage import SERVICE_BUS, complete_all, play, promise

HTTP = f"http://{os.environ['SERIATIM_AMQP']}"
BATCHES, EACH = 3, 3


def client():
    return ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0)


def administration():
    """As the samples make it: over HTTP without TLS, for which the SDK has no setting."""
    admin = ServiceBusAdministrationClient.from_connection_string(SERVICE_BUS, retry_total=0)
    admin._impl._client._base_url = HTTP
    return admin


def wait_until_healthy():
    for _ in range(50):
        try:
            with urllib.request.urlopen(f"{HTTP}/health", timeout=3) as answer:
                return json.load(answer)
        except urllib.error.URLError:
            time.sleep(0.1)
    raise AssertionError("it is never healthy")


def receive(receiver):
    with receiver:
        return complete_all(receiver, 1, together=1)


def send_batches(queue):
    with client() as bus, bus.get_queue_sender(queue) as sender:
        for batch in range(1, BATCHES + 1):
            messages = sender.create_message_batch()
            for number in range(1, EACH + 1):
                messages.add_message(ServiceBusMessage(f"Batch:{batch}:Message:{number}"))
            sender.send_messages(messages)


def check_queue(queue):
    send_batches(queue)
    with client() as bus:
        received = [str(message) for message in receive(bus.get_queue_receiver(queue))]
    expected = [f"Batch:{batch}:Message:{number}" for batch in range(1, BATCHES + 1) for number in range(1, EACH + 1)]
    assert received == expected, received


def check_topic(topic, subscriptions):
    """Three of each kind; who gets which, the samples say."""
    json_ones = [ServiceBusMessage(f"Message number : {n}", content_type="application/json") for n in range(3)]
    with_property = [
        ServiceBusMessage(f"Message number : {n}", application_properties={"prop1": "value1"}) for n in range(3, 6)]
    with_id = [
        ServiceBusMessage(f"Message number : {n}", message_id="123456", application_properties={"userProp1": "value1"})
        for n in range(6, 9)]
    with client() as bus, bus.get_topic_sender(topic) as sender:
        for message in json_ones + with_property + with_id:
            sender.send_messages(message)
    got = {}
    with client() as bus:
        for subscription in subscriptions:
            got[subscription] = receive(bus.get_subscription_receiver(topic, subscription))
    numbers = [[int(str(message).rpartition(" ")[2]) for message in got[name]] for name in subscriptions]
    assert numbers == [[0, 1, 2], [3, 4, 5], list(range(9)), [6, 7, 8]], numbers
    assert [message.to for message in got[subscriptions[3]]] == ["Entity"] * 3
    assert [message.to for message in got[subscriptions[2]]] == [None] * 9


@promise
def it_says_that_it_is_healthy():
    assert wait_until_healthy() == {"status": "healthy", "message": "Service is healthy."}


@promise
def a_queue_of_the_file_gives_what_was_sent_in_batches():
    check_queue("queue.1")
    check_queue("contoso-queue")


@promise
def a_topic_of_the_file_gives_each_subscription_what_its_rules_say():
    check_topic("topic.1", [f"subscription.{number}" for number in range(1, 5)])


@promise
def a_message_of_the_file_is_dead_lettered_after_its_third_delivery():
    with client() as bus:
        with bus.get_queue_sender("queue.1") as sender:
            sender.send_messages(ServiceBusMessage("poison"))
        with bus.get_queue_receiver("queue.1") as receiver:
            for _ in range(3):
                [message] = receiver.receive_messages(1, max_wait_time=5)
                receiver.abandon_message(message)
            assert receiver.receive_messages(1, max_wait_time=1) == []
        [letter] = receive(bus.get_queue_receiver("queue.1", sub_queue="deadletter"))
        assert (str(letter), letter.dead_letter_reason) == ("poison", "MaxDeliveryCountExceeded")


@promise
def a_queue_that_the_program_makes_is_used_and_deleted():
    queue = f"queue-{uuid4().hex}"
    with administration() as admin:
        admin.create_queue(queue)
        try:
            check_queue(queue)
        finally:
            admin.delete_queue(queue)
        assert queue not in [found.name for found in admin.list_queues()]


@promise
def a_topic_that_the_program_makes_chooses_as_the_one_of_the_file():
    topic = f"topic-{uuid4().hex}"
    rules = {
        "one": ("json", CorrelationRuleFilter(content_type="application/json"), None),
        "two": ("property", CorrelationRuleFilter(properties={"prop1": "value1"}), None),
        "four": (
            "sql", SqlRuleFilter("sys.MessageId = '123456' AND userProp1 = 'value1'"),
            SqlRuleAction("SET sys.To = 'Entity'")),
    }
    with administration() as admin:
        admin.create_topic(topic)
        for subscription in ("one", "two", "three", "four"):
            admin.create_subscription(topic, subscription)
            if subscription in rules:
                name, chosen, action = rules[subscription]
                admin.delete_rule(topic, subscription, "$Default")
                admin.create_rule(topic, subscription, name, filter=chosen, action=action)
        check_topic(topic, ["one", "two", "three", "four"])
        admin.delete_topic(topic)


play()
