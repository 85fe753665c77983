"""An order is packed, and its parcel sent on, in one transaction: never one without the other, and never twice."""
import os

from proton import Message
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import Container

ADDRESS = os.environ.get("SERIATIM_AMQP", "127.0.0.1:5672")


class Pack(MessagingHandler, TransactionHandler):
    def __init__(self):
        super().__init__(auto_accept=False, prefetch=1)
        self.order = self.transaction = None
        self.committed = False

    def on_start(self, event):
        self.connection = event.container.connect(ADDRESS)
        self.parcels = event.container.create_sender(self.connection, "parcels")
        event.container.create_sender(self.connection, "packing").send(Message(body="order 17", inferred=True))
        event.container.create_receiver(self.connection, "packing")
        event.container.declare_transaction(self.connection, handler=self)

    def on_transaction_declared(self, event):
        self.transaction = event.transaction
        self.pack()

    def on_message(self, event):
        self.order = event
        self.pack()

    def pack(self):
        if self.order is None or self.transaction is None:
            return
        parcel = Message(body=f"parcel of {self.order.message.body}", inferred=True)
        self.transaction.send(self.parcels, parcel)
        self.transaction.accept(self.order.delivery)
        self.transaction.commit()

    def on_transaction_committed(self, event):
        print("packed and sent on")
        self.committed = True
        self.connection.close()

    def on_transaction_commit_failed(self, event):
        self.connection.close()


handler = Pack()
Container(handler).run()
assert handler.committed
