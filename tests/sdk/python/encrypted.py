"""Every way to the port of AMQP: in TLS, and over WebSockets with and without it."""
import asyncio
import os

from azure.servicebus import ServiceBusClient, ServiceBusMessage, TransportType
from azure.servicebus.aio import ServiceBusClient as AsyncClient

from stage import SERVICE_BUS, play, promise

PORT = os.environ["SERIATIM_AMQP"].rpartition(":")[2]
CERTIFICATE = os.environ["SERIATIM_CERTIFICATE"]
# As in Azure: without a port, and without the word for an emulator, which stands for no TLS.
ENCRYPTED = "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0"
IN_TLS = {"custom_endpoint_address": f"sb://localhost:{PORT}", "connection_verify": CERTIFICATE}
WEBSOCKET = {
    "transport_type": TransportType.AmqpOverWebsocket,
    "custom_endpoint_address": f"https://localhost:{PORT}",
}
LARGE = b"x" * 900_000


def there_and_back(queue, connection, **options):
    with ServiceBusClient.from_connection_string(connection, retry_total=0, **options) as client:
        with client.get_queue_sender(queue) as sender:
            sender.send_messages([ServiceBusMessage("a"), ServiceBusMessage("b")])
            sender.send_messages(ServiceBusMessage(LARGE))
        with client.get_queue_receiver(queue) as receiver:
            bodies = []
            while len(bodies) < 3:
                messages = receiver.receive_messages(3, max_wait_time=10)
                assert messages, bodies
                for message in messages:
                    bodies.append(b"".join(message.body))
                    receiver.complete_message(message)
    assert bodies == [b"a", b"b", LARGE], [len(body) for body in bodies]


@promise
def messages_go_over_amqp_in_tls():
    there_and_back("queue-1", ENCRYPTED, **IN_TLS)


@promise
def messages_go_over_a_websocket_in_tls():
    there_and_back("queue-2", ENCRYPTED, connection_verify=CERTIFICATE, **WEBSOCKET)


@promise
def messages_go_over_a_websocket_without_tls():
    there_and_back("queue-3", SERVICE_BUS, **WEBSOCKET)


@promise
async def messages_go_over_a_websocket_in_tls_with_asyncio():
    connection = AsyncClient.from_connection_string(
        ENCRYPTED, retry_total=0, connection_verify=CERTIFICATE, **WEBSOCKET)
    async with connection as client:
        async with client.get_queue_sender("queue-4") as sender:
            await sender.send_messages(ServiceBusMessage(LARGE))
        async with client.get_queue_receiver("queue-4") as receiver:
            [message] = await asyncio.wait_for(receiver.receive_messages(1, max_wait_time=10), 20)
            assert b"".join(message.body) == LARGE
            await receiver.complete_message(message)


@promise
def the_port_takes_amqp_without_tls_beside_it():
    there_and_back("queue-5", SERVICE_BUS)


play()
