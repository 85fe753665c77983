"""Locks that are renewed in the background, of hundreds of messages and of sessions, and locks that are lost."""
import time

from azure.servicebus import AutoLockRenewer, ServiceBusClient, ServiceBusMessage
from azure.servicebus._pyamqp.management_link import ManagementLink
from azure.servicebus.exceptions import MessageLockLostError, SessionLockLostError

from stage import SERVICE_BUS, play, promise, queue, short

# How long an answer waits for the request that it belongs to.
NOTED_SECONDS_MAX = 5

take_answer = ManagementLink._on_message_received


def take_answer_once_it_is_waited_for(link, frame, message):
    """Takes an answer, not before its request is noted.

    azure-servicebus 7.15 notes a request after it has sent it: a thread that reads the answer before throws it away, and the
    one that asked waits for it forever.
    """
    until = time.monotonic() + NOTED_SECONDS_MAX
    while not is_waited_for(link, message.properties.correlation_id) and time.monotonic() < until:
        time.sleep(0.001)
    take_answer(link, frame, message)


def is_waited_for(link, request):
    with link.lock:
        return any(noted.message.properties.message_id == request for noted in link._pending_operations)


ManagementLink._on_message_received = take_answer_once_it_is_waited_for

# Retries of the client would only hide what it was told.
client = ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0)


def send(name, *bodies, session=None):
    with client.get_queue_sender(name) as sender:
        sender.send_messages([ServiceBusMessage(body, session_id=session) for body in bodies])


def refused(kind, call, *arguments):
    try:
        call(*arguments)
    except kind:
        return
    raise AssertionError(f"{call.__name__} was not refused")


@promise
def three_hundred_locks_are_renewed_in_the_background_at_once():
    name = queue(**short("30s"))
    send(name, *map(str, range(300)))
    with client.get_queue_receiver(name) as receiver:
        messages = []
        with AutoLockRenewer(max_workers=8) as renewer:
            # How long before its end a lock is renewed: the client's 10 seconds were too few for 300 where processors are scarce.
            renewer._renew_period = 20
            while len(messages) < 300:
                received = receiver.receive_messages(300 - len(messages), max_wait_time=10)
                assert received, len(messages)
                for message in received:
                    renewer.register(receiver, message, max_lock_renewal_duration=60)
                messages += received
            time.sleep(31)
        # Beside one that completes, the client's renewer was seen to come ten seconds late where processors were scarce.
        for message in messages:
            assert message.delivery_count == 0 and not message.auto_renew_error, message.auto_renew_error
            receiver.complete_message(message)
        assert receiver.receive_messages(1, max_wait_time=0.5) == []


@promise
def a_session_renewed_in_the_background_is_kept_until_that_ends():
    name = queue(**short("4s"))
    send(name, "1", "2", session="s")
    with client.get_queue_receiver(name, session_id="s") as receiver:
        with AutoLockRenewer() as renewer:
            renewer.register(receiver, receiver.session, max_lock_renewal_duration=7)
            first, second = receiver.receive_messages(2, max_wait_time=10)
            time.sleep(6)
            receiver.complete_message(first)
            assert receiver.session.auto_renew_error is None
            time.sleep(6.5)
            assert receiver.session.auto_renew_error is not None
            refused(SessionLockLostError, receiver.complete_message, second)


@promise
def a_renewer_of_a_receiver_keeps_its_session():
    name = queue(**short("4s"))
    send(name, "1", "2", session="s")
    with AutoLockRenewer(max_lock_renewal_duration=30) as renewer:
        with client.get_queue_receiver(name, session_id="s", auto_lock_renewer=renewer) as receiver:
            for message in receiver.receive_messages(2, max_wait_time=10):
                time.sleep(5)
                receiver.complete_message(message)
            assert receiver.session.auto_renew_error is None
            assert receiver.receive_messages(1, max_wait_time=0.5) == []


@promise
def the_lock_of_a_message_that_is_lost_is_neither_renewed_nor_completed():
    name = queue(**short("2s"))
    send(name, "a")
    with client.get_queue_receiver(name) as receiver:
        [message] = receiver.receive_messages(1, max_wait_time=10)
        time.sleep(3)
        refused(MessageLockLostError, receiver.complete_message, message)
        refused(MessageLockLostError, receiver.renew_message_lock, message)
    with client.get_queue_receiver(name) as receiver:
        [message] = receiver.receive_messages(1, max_wait_time=10)
        assert message.delivery_count == 1, message.delivery_count
        receiver.complete_message(message)


@promise
def a_session_that_is_lost_is_neither_renewed_nor_completed():
    name = queue(**short("2s"))
    send(name, "a", session="s")
    with client.get_queue_receiver(name, session_id="s") as receiver:
        [message] = receiver.receive_messages(1, max_wait_time=10)
        time.sleep(3)
        refused(SessionLockLostError, receiver.complete_message, message)
        refused(SessionLockLostError, receiver.session.renew_lock)
    with client.get_queue_receiver(name, session_id="s") as receiver:
        [message] = receiver.receive_messages(1, max_wait_time=10)
        assert message.delivery_count == 1, message.delivery_count
        receiver.complete_message(message)


play()
