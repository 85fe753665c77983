"""Sends with Azure's SDK through one node of a cluster, and receives and settles through another."""
import sys

from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import SessionLockLostError

SESSIONS = [f"session-{number}" for number in range(6)]
BODIES = ["1", "2", "3"]
LOCKS_LOST_MAX = 5


def client(address):
    return ServiceBusClient.from_connection_string(
        f"Endpoint=sb://{address};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0;"
        "UseDevelopmentEmulator=true"
    )


def drained(accept):
    """Completes what a session has. A lock may be lost whenever a partition gets another node; then it is accepted again."""
    completed = []
    for _ in range(LOCKS_LOST_MAX):
        try:
            with accept() as receiver:
                while len(completed) < len(BODIES):
                    for message in receiver.receive_messages(len(BODIES), max_wait_time=20):
                        receiver.complete_message(message)
                        completed.append(str(message))
            return completed
        except SessionLockLostError as lost:
            print(lost, file=sys.stderr)
    return completed


with client(sys.argv[1]) as one, client(sys.argv[2]) as other:
    with one.get_queue_sender("parcels") as sender:
        for session in SESSIONS:
            sender.send_messages([ServiceBusMessage(body, session_id=session) for body in BODIES])
        sender.send_messages(ServiceBusMessage("alone"))
    for session in SESSIONS:
        completed = drained(lambda: other.get_queue_receiver("parcels", session_id=session))
        assert completed == BODIES, completed
    with other.get_queue_receiver("parcels") as receiver:
        (message,) = receiver.receive_messages(1, max_wait_time=20)
        assert str(message) == "alone", str(message)
        receiver.complete_message(message)
    with one.get_topic_sender("orders") as sender:
        for session in SESSIONS:
            sender.send_messages([ServiceBusMessage(body, session_id=session) for body in BODIES])
    for subscription in ["billing", "review"]:
        for session in SESSIONS:
            completed = drained(
                lambda: other.get_subscription_receiver("orders", subscription, session_id=session)
            )
            assert completed == BODIES, completed
print("done")
