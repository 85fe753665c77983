"""A payment fails again and again: the definition says when it is tried, and when it is given up."""
import os
import time

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusSubQueue

ADDRESS = os.environ.get("SERIATIM_AMQP", "127.0.0.1:5672")
CONNECTION = f"Endpoint=sb://{ADDRESS};SharedAccessKeyName=any;SharedAccessKey=any;UseDevelopmentEmulator=true"

with ServiceBusClient.from_connection_string(CONNECTION) as client:
    with client.get_queue_sender("payments") as sender:
        sender.send_messages(ServiceBusMessage("pay order 17"))

    waits = []
    with client.get_queue_receiver("payments") as receiver:
        for attempt in range(3):
            begun = time.monotonic()
            [message] = receiver.receive_messages(1, max_wait_time=10)
            waits.append(time.monotonic() - begun)
            print(f"attempt {message.delivery_count + 1} after {waits[-1]:.1f} s")
            receiver.abandon_message(message)

    with client.get_queue_receiver("payments", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        [letter] = receiver.receive_messages(1, max_wait_time=10)
        print(f"given up: {letter.dead_letter_reason}")
        receiver.complete_message(letter)

assert 0.9 < waits[1] < 1.9 < waits[2], waits
