"""What the SDK was told is durable is there after the daemon was killed."""
from datetime import datetime, timedelta, timezone

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusSubQueue
from azure.servicebus.exceptions import MessageLockLostError, MessageNotFoundError, ServiceBusError

from stage import SERVICE_BUS, kill, play, promise, queue, receive_all


def connect(**options):
    return ServiceBusClient.from_connection_string(SERVICE_BUS, **options)


def bodies(client, name, **options):
    return [str(message) for message in receive_all(client, name, 1, **options)]


@promise
def every_settlement_survives():
    name = queue()
    with connect() as client, client.get_queue_sender(name) as sender, client.get_queue_receiver(name) as receiver:
        sender.send_messages([ServiceBusMessage(body) for body in ["done", "aside", "bad", "held", "left"]])
        in_an_hour = datetime.now(timezone.utc) + timedelta(hours=1)
        [scheduled] = sender.schedule_messages(ServiceBusMessage("later"), in_an_hour)
        messages = {str(message): message for message in take(receiver, 4)}
        receiver.complete_message(messages["done"])
        receiver.defer_message(messages["aside"])
        receiver.dead_letter_message(messages["bad"], reason="bad")
        kill()
    with connect() as client:
        assert bodies(client, name) == ["held", "left"]
        assert bodies(client, name, sub_queue=ServiceBusSubQueue.DEAD_LETTER) == ["bad"]
        with client.get_queue_receiver(name) as receiver:
            [aside] = receiver.receive_deferred_messages(messages["aside"].sequence_number)
            receiver.complete_message(aside)
        with client.get_queue_sender(name) as sender:
            sender.cancel_scheduled_messages(scheduled)
    with connect(retry_total=0) as client, client.get_queue_sender(name) as sender:
        try:
            sender.cancel_scheduled_messages(scheduled)
            raise AssertionError("a message was cancelled twice")
        except MessageNotFoundError:
            pass


def take(receiver, count):
    taken = []
    while len(taken) < count:
        messages = receiver.receive_messages(count - len(taken), max_wait_time=10)
        assert messages, f"only {len(taken)} came"
        taken += messages
    return taken


@promise
def each_message_whose_send_was_answered_is_there():
    name = queue()
    sent = []
    for _ in range(3):
        with connect() as client, client.get_queue_sender(name) as sender:
            for _ in range(10):
                body = str(len(sent))
                sender.send_messages(ServiceBusMessage(body))
                sent.append(body)
            kill()
    with connect() as client:
        assert bodies(client, name) == sent


@promise
def a_delivery_from_before_is_counted_and_its_lock_is_lost():
    name = queue()
    client = connect()
    with client.get_queue_sender(name) as sender:
        sender.send_messages(ServiceBusMessage("a"))
    receiver = client.get_queue_receiver(name)
    [message] = receiver.receive_messages(1, max_wait_time=10)
    kill()
    try:
        receiver.complete_message(message)
        raise AssertionError("a lock from before the kill completed")
    except (MessageLockLostError, ServiceBusError):
        pass
    with connect() as client, client.get_queue_receiver(name) as receiver:
        [again] = receiver.receive_messages(1, max_wait_time=10)
        assert again.delivery_count == 1, again
        receiver.complete_message(again)


@promise
def the_state_of_a_session_survives():
    name = queue()
    with connect() as client:
        with client.get_queue_receiver(name, session_id="one") as receiver:
            receiver.session.set_state(b"step 1")
    kill()
    with connect() as client, client.get_queue_receiver(name, session_id="one") as receiver:
        assert receiver.session.get_state() == b"step 1"


play()
