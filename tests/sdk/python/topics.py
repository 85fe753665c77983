"""Topics: a message goes to every subscription whose rules match, and each subscription is received from as a queue."""
import time

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusSubQueue
from azure.servicebus.exceptions import MessageLockLostError, ServiceBusError

from stage import SERVICE_BUS, complete_all, play, promise

TOPIC = "topic.1"


def client():
    return ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0)


def send(*messages):
    with client() as bus, bus.get_topic_sender(TOPIC) as sender:
        sender.send_messages(list(messages))


def receive(subscription, at_least=1, **options):
    """Receives and completes what is there, and at least so many."""
    with client() as bus, bus.get_subscription_receiver(TOPIC, subscription, **options) as receiver:
        return complete_all(receiver, 0.7, at_least)


def clear(subscription):
    """Receives what other promises have sent: subscriptions keep it."""
    receive(subscription, at_least=0)


def bodies(messages):
    return [str(message) for message in messages]


@promise
def a_message_goes_to_every_subscription_whose_rules_match():
    clear("subscription.3")
    send(ServiceBusMessage("plain", session_id="s"))
    send(ServiceBusMessage("property", application_properties={"prop1": "value1"}, session_id="s"))
    send(ServiceBusMessage(
        "all", message_id="msgid1", subject="subject1", correlation_id="id1", content_type="application/text",
        reply_to="someQueue", reply_to_session_id="sessionId", session_id="session1", to="xyz"))
    send(ServiceBusMessage(
        "other", message_id="msgid1", subject="subject1", correlation_id="id1", content_type="application/text",
        reply_to="someQueue", reply_to_session_id="sessionId", session_id="session1", to="xy"))
    assert bodies(receive("subscription.1")) == ["all"]
    assert bodies(receive("subscription.2")) == ["property"]
    assert bodies(receive("subscription.3", at_least=4)) == ["plain", "property", "all", "other"]


@promise
def an_action_changes_the_copy_of_its_subscription_only():
    clear("subscription.3")
    send(ServiceBusMessage(
        "sql", message_id="123456", session_id="s", application_properties={"userProp1": "value1", "other": 7}))
    [changed], [plain] = receive("subscription.4"), receive("subscription.3")
    assert changed.to == "Entity" and plain.to is None, (changed.to, plain.to)
    changes = {_text(name): _text(value) for name, value in changed.application_properties.items()}
    assert changes == {"other": 7, "userProp2": "value1!", "RuleName": "sql-filter-1"}, changes
    assert {_text(name) for name in plain.application_properties} == {"userProp1", "other"}


def _text(value):
    return value.decode() if isinstance(value, bytes) else value


@promise
def a_batch_keeps_its_order_in_each_subscription():
    clear("subscription.3")
    send(*[ServiceBusMessage(str(number), session_id="s") for number in range(100)])
    assert bodies(receive("subscription.3", at_least=100)) == [str(number) for number in range(100)]


@promise
def a_subscription_has_sessions_and_dead_letters_as_a_queue_has():
    with client() as bus:
        with bus.get_subscription_receiver(TOPIC, "sessions", session_id="one") as session:
            while messages := session.receive_messages(10, max_wait_time=1):
                for message in messages:
                    session.complete_message(message)
        send(ServiceBusMessage("1", session_id="one"), ServiceBusMessage("2", session_id="one"))
        with bus.get_subscription_receiver(TOPIC, "sessions", session_id="one") as session:
            first, second = session.receive_messages(2, max_wait_time=5)
            assert (str(first), str(second)) == ("1", "2")
            session.dead_letter_message(first, reason="wrong")
            session.complete_message(second)
    [letter] = receive("sessions", sub_queue=ServiceBusSubQueue.DEAD_LETTER)
    assert (str(letter), letter.dead_letter_reason) == ("1", "wrong")


@promise
def names_are_the_same_in_any_case():
    clear("subscription.3")
    with client() as bus, bus.get_topic_sender("TOPIC.1") as sender:
        sender.send_messages(ServiceBusMessage("x", session_id="s"))
    with client() as bus, bus.get_subscription_receiver("Topic.1", "Subscription.3") as receiver:
        [message] = receiver.receive_messages(1, max_wait_time=5)
        receiver.complete_message(message)


@promise
def what_is_not_there_is_said_and_nobody_receives_from_a_topic():
    with client() as bus:
        for receiver in [
            bus.get_subscription_receiver(TOPIC, "missing"),
            bus.get_subscription_receiver("missing", "subscription.1"),
            bus.get_queue_receiver(TOPIC),
        ]:
            try:
                with receiver:
                    receiver.receive_messages(1, max_wait_time=1)
            except ServiceBusError:
                continue
            raise AssertionError(f"{receiver} is there")
        try:
            with bus.get_queue_sender(f"{TOPIC}/subscriptions/subscription.3") as sender:
                sender.send_messages(ServiceBusMessage("x"))
        except ServiceBusError:
            return
        raise AssertionError("a subscription takes messages")


@promise
def a_large_message_goes_to_every_subscription_again_and_again():
    clear("subscription.3")
    body = bytes(range(256)) * 400
    with client() as bus, bus.get_topic_sender(TOPIC) as sender:
        for _ in range(10):
            sender.send_messages(ServiceBusMessage(body, session_id="s"))
    assert [b"".join(message.body) for message in receive("subscription.3", at_least=10)] == [body] * 10


@promise
def a_lock_of_a_subscription_that_is_lost_is_neither_renewed_nor_completed():
    send(ServiceBusMessage("a", session_id="s", application_properties={"lost": True}))
    with client() as bus:
        with bus.get_subscription_receiver(TOPIC, "short") as receiver:
            [message] = receiver.receive_messages(1, max_wait_time=10)
            time.sleep(1.5)
            for call in (receiver.renew_message_lock, receiver.complete_message):
                try:
                    call(message)
                except MessageLockLostError:
                    continue
                raise AssertionError(f"{call.__name__} was not refused")
        with bus.get_subscription_receiver(TOPIC, "short") as receiver:
            [message] = receiver.receive_messages(1, max_wait_time=10)
            assert (str(message), message.delivery_count) == ("a", 1), message.delivery_count
            receiver.complete_message(message)


play()
