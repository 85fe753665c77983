"""The messages of one order arrive shuffled, and are received in order, by any receiver."""
import os
import random

from azure.servicebus import ServiceBusClient
from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageProperties

ADDRESS = os.environ.get("SERIATIM_AMQP", "127.0.0.1:5672")
CONNECTION = f"Endpoint=sb://{ADDRESS};SharedAccessKeyName=any;SharedAccessKey=any;UseDevelopmentEmulator=true"

order = f"order-{random.randrange(10 ** 9)}"
steps = ["placed", "paid", "packed", "sent"]
shuffled = random.sample(list(enumerate(steps, start=1)), len(steps))

with ServiceBusClient.from_connection_string(CONNECTION) as client:
    with client.get_queue_sender("orders") as sender:
        for position, step in shuffled:
            place = AmqpMessageProperties(group_id=order, group_sequence=position)
            sender.send_messages(AmqpAnnotatedMessage(data_body=step.encode(), properties=place))

    received = []
    with client.get_queue_receiver("orders") as receiver:
        while len(received) < len(steps):
            [message] = receiver.receive_messages(1, max_wait_time=10)
            received.append(str(message))
            receiver.complete_message(message)

print(f"sent {[step for _, step in shuffled]}, received {received}")
assert received == steps
