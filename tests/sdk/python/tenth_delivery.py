"""A message that nobody settles: its lock runs out until it has been delivered ten times."""
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusSubQueue

from stage import SERVICE_BUS, play, promise, queue, short

client = ServiceBusClient.from_connection_string(SERVICE_BUS)


@promise
def a_message_is_dead_lettered_after_its_tenth_delivery():
    name = queue(**short())
    with client.get_queue_sender(name) as sender:
        sender.send_messages(ServiceBusMessage("a"))
    with client.get_queue_receiver(name) as receiver:
        for count in range(10):
            [message] = receiver.receive_messages(1, max_wait_time=10)
            assert message.delivery_count == count, (message.delivery_count, count)
        assert receiver.receive_messages(1, max_wait_time=3) == []
    with client.get_queue_receiver(name, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        [letter] = receiver.receive_messages(1, max_wait_time=10)
        assert letter.dead_letter_reason == "MaxDeliveryCountExceeded", letter.dead_letter_reason
        receiver.complete_message(letter)


play()
