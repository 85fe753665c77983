"""Sending, receiving and settling, with the asynchronous client."""
import asyncio
from datetime import datetime, timedelta, timezone

from azure.servicebus import ServiceBusMessage, ServiceBusSubQueue
from azure.servicebus.aio import AutoLockRenewer, ServiceBusClient

from stage import SERVICE_BUS, play, promise, queue, short


def connect():
    return ServiceBusClient.from_connection_string(SERVICE_BUS)


async def send(client, name, *bodies):
    async with client.get_queue_sender(name) as sender:
        await sender.send_messages([ServiceBusMessage(body) for body in bodies])


@promise
async def messages_are_sent_received_and_completed():
    name = queue()
    async with connect() as client:
        await send(client, name, *map(str, range(20)))
        received = []
        async with client.get_queue_receiver(name) as receiver:
            while len(received) < 20:
                for message in await receiver.receive_messages(10, max_wait_time=10):
                    received.append(int(str(message)))
                    await receiver.complete_message(message)
        assert received == list(range(20)), received


@promise
async def each_settlement_does_what_it_says():
    name = queue()
    async with connect() as client:
        await send(client, name, "a", "b", "c")
        async with client.get_queue_receiver(name) as receiver:
            [first] = await receiver.receive_messages(1, max_wait_time=10)
            await receiver.abandon_message(first)
            first, second, third = await receive(receiver, 3)
            assert (str(first), first.delivery_count) == ("a", 1), first
            await receiver.defer_message(first)
            await receiver.dead_letter_message(second, reason="bad")
            await receiver.complete_message(third)
            [deferred] = await receiver.receive_deferred_messages([first.sequence_number])
            await receiver.complete_message(deferred)
        async with client.get_queue_receiver(name, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
            [letter] = await receiver.receive_messages(1, max_wait_time=10)
            assert letter.dead_letter_reason == "bad"
            await receiver.complete_message(letter)


async def receive(receiver, count):
    received = []
    while len(received) < count:
        messages = await receiver.receive_messages(count - len(received), max_wait_time=10)
        assert messages, f"only {len(received)} came"
        received += messages
    return received


@promise
async def a_lock_renewed_in_the_background_is_kept():
    # The SDK looks once a second, and takes a lock that lasts less than four for too short.
    name = queue(**short("5s"))
    async with connect() as client:
        await send(client, name, "a")
        async with AutoLockRenewer() as renewer, client.get_queue_receiver(name) as receiver:
            [message] = await receiver.receive_messages(1, max_wait_time=10)
            renewer.register(receiver, message, max_lock_renewal_duration=30)
            await asyncio.sleep(7)
            await receiver.complete_message(message)


@promise
async def a_scheduled_message_comes_when_it_is_due():
    name = queue()
    async with connect() as client:
        async with client.get_queue_sender(name) as sender, client.get_queue_receiver(name) as receiver:
            due = datetime.now(timezone.utc) + timedelta(seconds=1)
            await sender.schedule_messages(ServiceBusMessage("a"), due)
            [message] = await receiver.receive_messages(1, max_wait_time=10)
            assert datetime.now(timezone.utc) >= due
            await receiver.complete_message(message)


@promise
async def receivers_at_once_receive_each_message_once():
    name = queue()
    async with connect() as client:
        await send(client, name, *map(str, range(50)))
        received = []

        async def work():
            async with client.get_queue_receiver(name) as receiver:
                while messages := await receiver.receive_messages(5, max_wait_time=1):
                    for message in messages:
                        received.append(int(str(message)))
                        await receiver.complete_message(message)

        await asyncio.gather(*[work() for _ in range(4)])
        assert sorted(received) == list(range(50)), received


play()
