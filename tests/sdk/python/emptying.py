"""Receives all that a queue has."""


def receive_all(client, name, max_wait_time, **options):
    """Receives and completes messages until none comes any more."""
    received = []
    with client.get_queue_receiver(name, **options) as receiver:
        while messages := receiver.receive_messages(10, max_wait_time=max_wait_time):
            received += messages
            for message in messages:
                receiver.complete_message(message)
    return received
