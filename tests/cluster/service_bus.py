"""Sends with Azure's SDK through one node of a cluster, and receives and settles through another."""
import sys

from azure.servicebus import ServiceBusClient, ServiceBusMessage

SESSIONS = [f"session-{number}" for number in range(6)]
BODIES = ["1", "2", "3"]


def client(address):
    return ServiceBusClient.from_connection_string(
        f"Endpoint=sb://{address};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0;"
        "UseDevelopmentEmulator=true"
    )


with client(sys.argv[1]) as one, client(sys.argv[2]) as other:
    with one.get_queue_sender("parcels") as sender:
        for session in SESSIONS:
            sender.send_messages([ServiceBusMessage(body, session_id=session) for body in BODIES])
        sender.send_messages(ServiceBusMessage("alone"))
    for session in SESSIONS:
        received = []
        with other.get_queue_receiver("parcels", session_id=session) as receiver:
            while len(received) < len(BODIES):
                for message in receiver.receive_messages(len(BODIES), max_wait_time=20):
                    received.append(str(message))
                    receiver.complete_message(message)
        assert received == BODIES, received
    with other.get_queue_receiver("parcels") as receiver:
        (message,) = receiver.receive_messages(1, max_wait_time=20)
        assert str(message) == "alone", str(message)
        receiver.complete_message(message)
    with one.get_topic_sender("orders") as sender:
        for session in SESSIONS:
            sender.send_messages([ServiceBusMessage(body, session_id=session) for body in BODIES])
    for subscription in ["billing", "review"]:
        for session in SESSIONS:
            received = []
            receiver = other.get_subscription_receiver("orders", subscription, session_id=session)
            with receiver:
                while len(received) < len(BODIES):
                    for message in receiver.receive_messages(len(BODIES), max_wait_time=20):
                        received.append(str(message))
                        receiver.complete_message(message)
            assert received == BODIES, received
print("done")
