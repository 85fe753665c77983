"""Transactions, by the AMQP client of Apache Qpid: the SDKs of Azure for Python and JavaScript have none."""
import os

from azure.servicebus import ServiceBusClient, ServiceBusMessage
from proton import Message
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import Container

from stage import SERVICE_BUS, kill, play, promise, queue, receive_all, short

client = ServiceBusClient.from_connection_string(SERVICE_BUS)
ADDRESS = os.environ["SERIATIM_AMQP"]


class PassOn(MessagingHandler, TransactionHandler):
    """Passes messages on from one queue to another, with one transaction."""

    def __init__(self, source, target, count, ends):
        super().__init__(auto_accept=False, prefetch=count)
        self.source, self.target, self.count, self.ends = source, target, count, ends
        self.received, self.transaction, self.outcome = [], None, None

    def on_start(self, event):
        self.connection = event.container.connect(ADDRESS)
        self.sender = event.container.create_sender(self.connection, self.target)
        event.container.create_receiver(self.connection, self.source)
        event.container.declare_transaction(self.connection, handler=self)

    def on_transaction_declared(self, event):
        self.transaction = event.transaction
        self.go_on()

    def on_message(self, event):
        self.received.append(event)
        self.go_on()

    def go_on(self):
        if self.transaction is None or len(self.received) < self.count:
            return
        for event in self.received:
            self.transaction.send(self.sender, Message(body=event.message.body, inferred=True))
            self.transaction.accept(event.delivery)
        if self.ends == "abort":
            self.transaction.abort()
        elif self.ends == "commit":
            self.transaction.commit()
        else:
            self.end("left")

    def end(self, outcome):
        self.outcome = outcome
        self.connection.close()

    def on_transaction_committed(self, event):
        self.end("committed")

    def on_transaction_aborted(self, event):
        self.end("aborted")

    def on_transaction_commit_failed(self, event):
        self.end("failed")


def pass_on(source, target, count, ends):
    handler = PassOn(source, target, count, ends)
    Container(handler).run()
    return handler.outcome


def filled(*bodies, **options):
    name = queue(**options)
    with client.get_queue_sender(name) as sender:
        sender.send_messages([ServiceBusMessage(body) for body in bodies])
    return name


def bodies(name, wait=1):
    return [str(message) for message in receive_all(client, name, wait)]


@promise
def what_is_committed_survives_a_kill():
    source, target = filled("0", "1", "2", order="none"), queue(order="none")
    assert pass_on(source, target, 3, "commit") == "committed"
    kill()
    passed = bodies(source), bodies(target)
    assert passed == ([], ["0", "1", "2"]), passed


@promise
def what_is_rolled_back_or_left_open_never_happened():
    for ends, outcome in [("abort", "aborted"), ("leave", "left")]:
        source, target = filled("0", "1", order="none", **short()), queue(order="none")
        assert pass_on(source, target, 2, ends) == outcome
        assert bodies(target) == [], ends
        assert sorted(bodies(source, wait=5)) == ["0", "1"], ends


@promise
def a_transaction_that_cannot_be_done_whole_is_not_done_at_all():
    source, target = filled("0", "1", order="none"), queue(order="none", limits={"messages_max": 1})
    assert pass_on(source, target, 2, "commit") == "failed"
    assert bodies(target) == []


play()
