"""While the daemon is killed again and again under load, nothing the SDK was told is lost, and sessions stay in order."""
import threading

from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import OperationTimeoutError, ServiceBusError

from stage import SERVICE_BUS, kill, play, promise, queue, wait_until_empty

SENDERS, SESSIONS, EACH, RECEIVERS, KILLS = 3, 4, 25, 3, 4
TOTAL = SENDERS * SESSIONS * EACH


class Ledger:
    """What was told to whom, from outside."""

    def __init__(self):
        self.changed = threading.Condition()
        self.accepted, self.completed = set(), set()
        # Whose completion was asked for and not answered: a kill may have come between the two.
        self.asked = set()
        self.handled, self.wrong = {}, []
        self.is_over = False

    def accept(self, session, number):
        with self.changed:
            self.accepted.add((session, number))

    def handle(self, session, number):
        with self.changed:
            before = self.handled.setdefault(session, -1)
            if (session, number) in self.completed:
                self.wrong.append(f"{session}: {number} was handled after it was completed")
            if number > before + 1:
                self.wrong.append(f"{session}: {number} was handled after {before}")
            self.handled[session] = max(before, number)
            self.asked.discard((session, number))

    def ask(self, session, number):
        with self.changed:
            self.asked.add((session, number))

    def complete(self, session, number):
        with self.changed:
            self.completed.add((session, number))
            self.asked.discard((session, number))
            self.changed.notify_all()

    def wait_for(self, count):
        with self.changed:
            is_enough = self.changed.wait_for(lambda: len(self.completed | self.asked) >= count, 90)
            assert is_enough, f"{len(self.completed)} of {count}, and {self.asked} may be"


def connect():
    return ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=1, retry_backoff_factor=0.1)


def send(name, own, ledger):
    """Sends the same message until it is answered: its ID says that it is the same."""
    waiting = [(f"s{own}-{session}", number) for number in range(EACH) for session in range(SESSIONS)]
    while waiting:
        try:
            with connect() as client, client.get_queue_sender(name) as sender:
                while waiting:
                    session, number = waiting[0]
                    sender.send_messages(
                        ServiceBusMessage(str(number), session_id=session, message_id=f"{session}-{number}"))
                    ledger.accept(session, number)
                    waiting.pop(0)
        except ServiceBusError:
            pass


def receive(name, ledger):
    while not ledger.is_over:
        try:
            with connect() as client:
                take_sessions(client, name, ledger)
        except ServiceBusError:
            pass


def take_sessions(client, name, ledger):
    while not ledger.is_over:
        try:
            with client.get_queue_receiver(name, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=1) as receiver:
                session = receiver.session.session_id
                for message in receiver.receive_messages(10, max_wait_time=1):
                    ledger.handle(session, int(str(message)))
                    ledger.ask(session, int(str(message)))
                    receiver.complete_message(message)
                    ledger.complete(session, int(str(message)))
        except OperationTimeoutError:
            pass


@promise
def nothing_is_lost_and_every_session_stays_in_order():
    options = {"delivery": {"lock": "30s", "count_max": 100}, "duplicates": {"window": "10m"}}
    name, ledger = queue(order="arrival", **options), Ledger()
    # Nobody waits for them to end: the SDK takes its time to close what was cut off.
    threads = [threading.Thread(target=send, args=(name, own, ledger), daemon=True) for own in range(SENDERS)]
    threads += [threading.Thread(target=receive, args=(name, ledger), daemon=True) for _ in range(RECEIVERS)]
    for thread in threads:
        thread.start()
    for number in range(1, KILLS + 1):
        ledger.wait_for(TOTAL * number // (KILLS + 1))
        kill()
    ledger.wait_for(TOTAL)
    wait_until_empty(name)
    ledger.is_over = True
    assert not ledger.wrong, ledger.wrong[:5]
    assert ledger.accepted == ledger.completed | ledger.asked and len(ledger.accepted) == TOTAL, len(ledger.completed)


play()
