"""A daemon with keys: connection strings carry one, and each does what its file says."""
import os

from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError

from stage import play, promise, queue


def connect(name, secret):
    address = os.environ["SERIATIM_AMQP"]
    connection = (f"Endpoint=sb://{address};SharedAccessKeyName={name};SharedAccessKey={secret};"
                  "UseDevelopmentEmulator=true")
    return ServiceBusClient.from_connection_string(connection, retry_total=0)


SECRET, SENDER_SECRET = os.environ["SERIATIM_SECRET"], os.environ["SERIATIM_SENDER_SECRET"]


def refused(call, *arguments):
    try:
        call(*arguments)
    except ServiceBusError:
        return
    raise AssertionError("it was not refused")


def send(name, secret, queue_name):
    with connect(name, secret) as client, client.get_queue_sender(queue_name) as sender:
        sender.send_messages(ServiceBusMessage("a"))


def receive(name, secret, queue_name):
    with connect(name, secret) as client, client.get_queue_receiver(queue_name) as receiver:
        [message] = receiver.receive_messages(1, max_wait_time=10)
        receiver.complete_message(message)


@promise
def a_key_does_what_its_rights_say_and_no_more():
    name = queue("open-door")
    send("everything", SECRET, name)
    send("sender", SENDER_SECRET, name)
    receive("everything", SECRET, name)
    refused(receive, "sender", SENDER_SECRET, name)
    refused(send, "sender", SENDER_SECRET, queue("closed"))


@promise
def without_the_right_key_nothing_is_done():
    name = queue("open-house")
    refused(send, "everything", SENDER_SECRET, name)
    refused(send, "nobody", SECRET, name)


play()
