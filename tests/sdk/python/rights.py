"""A daemon with keys, in TLS: keys that may only send or only receive, tokens that the program signs, topics."""
import base64
import hashlib
import hmac
import os
import time
import urllib.parse

from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError

from stage import play, promise

PORT = os.environ["SERIATIM_AMQP"].rpartition(":")[2]
OPTIONS = {"custom_endpoint_address": f"sb://localhost:{PORT}", "connection_verify": os.environ["SERIATIM_CERTIFICATE"],
           "retry_total": 0}
SECRETS = {name: os.environ[f"SERIATIM_{variable}"] for name, variable in (
    ("everything", "SECRET"), ("sender", "SENDER_SECRET"), ("receiver", "RECEIVER_SECRET"))}


def connect(name):
    return ServiceBusClient("localhost", AzureNamedKeyCredential(name, SECRETS[name]), **OPTIONS)


def sign(name, entity, seconds=600):
    """A shared access signature for an entity, as a program makes one itself."""
    resource, until = urllib.parse.quote_plus(f"sb://localhost/{entity}"), int(time.time()) + seconds
    digest = hmac.new(SECRETS[name].encode(), f"{resource}\n{until}".encode(), hashlib.sha256).digest()
    signature = urllib.parse.quote_plus(base64.b64encode(digest))
    return f"SharedAccessSignature sr={resource}&sig={signature}&se={until}&skn={name}", until


class Signed:
    """A credential that gives a token which the program has signed."""

    def __init__(self, *signature):
        self.token = AccessToken(*signature)

    def get_token(self, *scopes, **options):
        return self.token


def send(client, name, topic=False):
    with client, (client.get_topic_sender(name) if topic else client.get_queue_sender(name)) as sender:
        sender.send_messages(ServiceBusMessage("a"))


def receive(client, *names):
    get = client.get_queue_receiver if len(names) == 1 else client.get_subscription_receiver
    with client, get(*names) as receiver:
        [message] = receiver.receive_messages(1, max_wait_time=10)
        receiver.complete_message(message)


def refused(call, *arguments):
    try:
        call(*arguments)
    except ServiceBusError:
        return
    raise AssertionError("it was not refused")


@promise
def a_key_that_may_only_receive_does_not_send():
    name = "open-receiver"
    refused(send, connect("receiver"), name)
    send(connect("sender"), name)
    receive(connect("receiver"), name)
    refused(receive, connect("sender"), name)
    with connect("receiver") as client, client.get_queue_receiver(name) as receiver:
        assert receiver.peek_messages(1) == []


@promise
def a_token_that_the_program_signs_gives_the_rights_of_its_key_where_it_says():
    name, other = "open-signed", "open-other"
    for credential in (AzureSasCredential(sign("everything", name)[0]), Signed(*sign("everything", name))):
        send(ServiceBusClient("localhost", credential, **OPTIONS), name)
        receive(ServiceBusClient("localhost", credential, **OPTIONS), name)
        refused(send, ServiceBusClient("localhost", credential, **OPTIONS), other)
    for signature in (sign("receiver", name), sign("everything", name, -60)):
        refused(send, ServiceBusClient("localhost", Signed(*signature), **OPTIONS), name)
        refused(send, ServiceBusClient("localhost", AzureSasCredential(signature[0]), **OPTIONS), name)
    wrong = sign("everything", name)[0].replace("sig=", "sig=AA")
    refused(send, ServiceBusClient("localhost", AzureSasCredential(wrong), **OPTIONS), name)


@promise
def a_topic_and_its_subscription_ask_for_keys_too():
    send(connect("sender"), "open-topic", True)
    refused(send, connect("receiver"), "open-topic", True)
    refused(send, connect("sender"), "closed-topic", True)
    refused(receive, connect("sender"), "open-topic", "sub")
    receive(connect("receiver"), "open-topic", "sub")
    token = AzureSasCredential(sign("everything", "open-topic")[0])
    send(ServiceBusClient("localhost", token, **OPTIONS), "open-topic", True)
    receive(ServiceBusClient("localhost", token, **OPTIONS), "open-topic", "sub")


play()
