"""Sessions: taken by name or the next one, their order, state and lock."""
import time

from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode
from azure.servicebus.exceptions import OperationTimeoutError, SessionCannotBeLockedError, SessionLockLostError

from stage import SERVICE_BUS, play, promise, queue, short

client = ServiceBusClient.from_connection_string(SERVICE_BUS)
# Retries of the client would only hide what it was told.
hasty = ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0)


def send(name, session, *bodies):
    with client.get_queue_sender(name) as sender:
        sender.send_messages([ServiceBusMessage(body, session_id=session) for body in bodies])


@promise
def a_named_session_gives_its_messages_in_order_and_no_others():
    name = queue()
    send(name, "one", "1", "2", "3")
    send(name, "two", "x")
    with client.get_queue_receiver(name, session_id="one") as receiver:
        received = []
        while messages := receiver.receive_messages(10, max_wait_time=1):
            for message in messages:
                assert message.session_id == "one"
                received.append(str(message))
                receiver.complete_message(message)
        assert received == ["1", "2", "3"], received


@promise
def the_next_session_is_one_that_nobody_holds():
    name = queue()
    send(name, "one", "1")
    send(name, "two", "2")
    with client.get_queue_receiver(name, session_id="one"):
        with client.get_queue_receiver(name, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=5) as receiver:
            assert receiver.session.session_id == "two"
            [message] = receiver.receive_messages(1, max_wait_time=10)
            receiver.complete_message(message)


@promise
def without_a_free_session_the_next_one_is_waited_for_and_then_not_had():
    name = queue()
    try:
        with hasty.get_queue_receiver(name, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=1):
            raise AssertionError("a session was taken where there is none")
    except OperationTimeoutError:
        pass


@promise
def a_session_has_one_holder():
    name = queue()
    send(name, "one", "1")
    with client.get_queue_receiver(name, session_id="one"):
        try:
            with hasty.get_queue_receiver(name, session_id="one"):
                raise AssertionError("a session was taken twice")
        except SessionCannotBeLockedError:
            pass
    with client.get_queue_receiver(name, session_id="one") as receiver:
        assert len(receiver.receive_messages(1, max_wait_time=10)) == 1


@promise
def the_state_of_a_session_outlives_its_messages():
    name = queue()
    send(name, "one", "1")
    with client.get_queue_receiver(name, session_id="one") as receiver:
        assert receiver.session.get_state() in (None, b"")
        receiver.session.set_state(b"step 1")
        [message] = receiver.receive_messages(1, max_wait_time=10)
        receiver.complete_message(message)
    with client.get_queue_receiver(name, session_id="one") as receiver:
        assert receiver.session.get_state() == b"step 1"
        receiver.session.set_state(None)
        assert receiver.session.get_state() in (None, b"")


@promise
def a_renewed_session_is_kept():
    name = queue(**short("2s"))
    send(name, "one", "1")
    with client.get_queue_receiver(name, session_id="one") as receiver:
        [message] = receiver.receive_messages(1, max_wait_time=10)
        for _ in range(3):
            time.sleep(1)
            before = receiver.session.locked_until_utc
            assert receiver.session.renew_lock() > before
        receiver.complete_message(message)


@promise
def a_session_whose_lock_ran_out_cannot_complete():
    name = queue(**short())
    send(name, "one", "1")
    with hasty.get_queue_receiver(name, session_id="one") as receiver:
        [message] = receiver.receive_messages(1, max_wait_time=10)
        time.sleep(1.5)
        try:
            receiver.complete_message(message)
            raise AssertionError("a lost session completed")
        except SessionLockLostError:
            pass
    with client.get_queue_receiver(name, session_id="one") as receiver:
        [message] = receiver.receive_messages(1, max_wait_time=10)
        assert message.delivery_count == 1, f"counted {message.delivery_count} times"
        receiver.complete_message(message)


@promise
def a_closed_session_gives_back_what_was_not_settled_uncounted():
    name = queue()
    send(name, "one", "1")
    for _ in range(3):
        with client.get_queue_receiver(name, session_id="one") as receiver:
            [message] = receiver.receive_messages(1, max_wait_time=10)
            assert message.delivery_count == 0, message


@promise
def a_message_deferred_in_a_session_is_received_by_its_holder():
    name = queue()
    send(name, "one", "1", "2")
    with client.get_queue_receiver(name, session_id="one") as receiver:
        [message] = receiver.receive_messages(1, max_wait_time=10)
        receiver.defer_message(message)
        [other] = receiver.receive_messages(1, max_wait_time=10)
        receiver.complete_message(other)
        [deferred] = receiver.receive_deferred_messages(message.sequence_number)
        assert (str(other), str(deferred)) == ("2", "1")
        receiver.complete_message(deferred)


@promise
def what_a_receiver_of_a_session_deletes_is_gone():
    name = queue()
    send(name, "one", *map(str, range(10)))
    mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
    with client.get_queue_receiver(name, session_id="one", receive_mode=mode, max_wait_time=1) as receiver:
        received = []
        for message in receiver:
            assert message.session_id == "one"
            received.append(str(message))
        assert received == [str(number) for number in range(10)], received
    with client.get_queue_receiver(name, session_id="one") as receiver:
        assert receiver.receive_messages(1, max_wait_time=0.5) == []


@promise
def a_message_abandoned_in_a_session_comes_again_first_and_is_counted():
    name = queue()
    send(name, "one", "1", "2", "3")
    with client.get_queue_receiver(name, session_id="one") as receiver:
        for count in range(3):
            [message] = receiver.receive_messages(1, max_wait_time=10)
            assert (str(message), message.delivery_count) == ("1", count), message
            receiver.abandon_message(message)
        received = []
        while len(received) < 3:
            [message] = receiver.receive_messages(1, max_wait_time=10)
            received.append((str(message), message.delivery_count))
            receiver.complete_message(message)
        assert received == [("1", 3), ("2", 0), ("3", 0)], received


play()
