"""Orders are sent to one topic: billing gets all, fraud those that are large, marked so by its rule."""
import os

from azure.servicebus import ServiceBusClient, ServiceBusMessage

ADDRESS = os.environ.get("SERIATIM_AMQP", "127.0.0.1:5672")
CONNECTION = f"Endpoint=sb://{ADDRESS};SharedAccessKeyName=any;SharedAccessKey=any;UseDevelopmentEmulator=true"


def receive(client, subscription, count):
    received = []
    with client.get_subscription_receiver("shop", subscription) as receiver:
        while len(received) < count and (messages := receiver.receive_messages(10, max_wait_time=10)):
            for message in messages:
                receiver.complete_message(message)
                received.append(message)
    return received


with ServiceBusClient.from_connection_string(CONNECTION) as client:
    with client.get_topic_sender("shop") as sender:
        # One transaction: both subscriptions have everything they want of it, or nothing of it is anywhere.
        sender.send_messages([
            ServiceBusMessage(f"order {number}", application_properties={"amount": 400 * number})
            for number in range(1, 5)
        ])
    billing = [str(message) for message in receive(client, "billing", 4)]
    fraud = receive(client, "fraud", 2)

for message in fraud:
    print(f"look at {message}: {message.application_properties[b'priority'].decode()}")
print(f"bill {', '.join(billing)}")

assert billing == ["order 1", "order 2", "order 3", "order 4"], billing
assert [str(message) for message in fraud] == ["order 3", "order 4"], fraud
