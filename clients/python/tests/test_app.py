"""What handlers are promised, by a worker over HTTP and by a program that the daemon runs."""

import asyncio
import contextlib
import datetime
import json
import logging
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

from seriatim import App, DeadLetter, Defer, Message, Retry, settling
from seriatim.app import Loop
from seriatim.testing import DevDaemon
from seriatim.worker import Worker

SOURCES = str(pathlib.Path(__file__).resolve().parent.parent / "src")


def until(condition, seconds=30):
    """Looks again and again; what came of it, or a failure."""
    ends = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > ends:
            raise AssertionError("it did not come about in time")
        time.sleep(0.02)


NAIVE = datetime.datetime(2030, 1, 1)


def leaves(context):
    sys.exit("enough")


def fails(context):
    # As Python names a file whose name is no UTF-8.
    raise FileNotFoundError("caf\udce9.txt")


def sets(state):
    def handle(context):
        context.state = state

    return handle


#: What a handler may do by mistake, and a part of the reason that is told.
MISTAKES = {
    "defers": lambda context: Defer(until=NAIVE),
    "retries": lambda context: Retry(after=-1),
    "sends": lambda context: context.send("orders", schedule_at=NAIVE),
    "leaves": leaves,
    "instant": sets(NAIVE),
    "no number": sets(float("nan")),
    "sends half": lambda context: context.send("orders", "caf\udce9.txt"),
    "file": fails,
    "retries half": lambda context: Retry("caf\udce9.txt"),
}
REASONS = {
    "defers": "time zone",
    "retries": "negative",
    "sends": "time zone",
    "leaves": "SystemExit: enough",
    "instant": "datetime",
    "no number": "JSON",
    "sends half": "surrogates",
    "file": "FileNotFoundError: caf?.txt",
    "retries half": "caf?.txt",
}


#: JSON that the daemon takes, and Python's parser does not.
DEEP = "[" * 100_000 + "]" * 100_000
DIGITS = '{"sum": ' + "7" * 5_000 + "}"


class Running:
    """A worker in a thread."""

    def __init__(self, app, client, concurrency=8):
        self.worker = Worker(app, client, concurrency)
        self.thread = threading.Thread(target=self.worker.run)

    def __enter__(self):
        self.thread.start()
        return self.worker

    def __exit__(self, *_):
        self.worker.stop()
        self.thread.join()


#: As long as a test waits for what has to come: a third of what a lock takes to run out.
PATIENCE = 10


class WithDaemon(unittest.TestCase):
    """With a daemon of its own, and a queue in order."""

    def setUp(self):
        self.daemon = DevDaemon()
        self.addCleanup(self.daemon.stop)
        self.client = self.daemon.client()
        self.addCleanup(self.client.close)
        self.queue = self.client.queue("orders")
        self.queue.create(order="position", retry={"backoff": {"first": "1ms", "max": "1ms"}})

    def send(self, count, workflow="w"):
        self.queue.send_batch([Message(str(n), workflow=workflow, position=n) for n in range(1, count + 1)])

    def completed(self):
        return self.queue.view()["counts"]["completed"]


class OfHandlers(WithDaemon):
    def test_a_failing_message_holds_back_what_is_behind_it_and_only_that(self):
        app, seen = App(), []

        @app.handler("orders")
        def handle(message, context):
            seen.append((message.workflow, message.text))
            if (message.workflow, message.text, context.attempt) == ("w", "2", 1):
                raise RuntimeError("not yet")

        self.send(3)
        self.send(2, "other")
        with self.assertLogs("seriatim"), Running(app, self.client):
            until(lambda: self.completed() == 5)
        self.assertEqual([text for workflow, text in seen if workflow == "w"], ["1", "2", "2", "3"])
        self.assertEqual([text for workflow, text in seen if workflow == "other"], ["1", "2"])

    def test_an_exception_means_what_the_handler_says(self):
        app = App()

        @app.handler("orders", retry={TimeoutError: Retry(after=0), ValueError: DeadLetter("bad", "no \udce9")})
        def handle(message, context):
            if message.text == "1" and context.attempt < 3:
                raise TimeoutError("slow")
            if message.text == "2":
                raise ValueError("x")
            if message.text == "3":
                return Defer()

        self.send(4)
        with Running(app, self.client):
            until(lambda: self.completed() == 2)
        counts = self.queue.view()["counts"]
        self.assertEqual((counts["dead_lettered"], counts["by_consumer"]), (1, 1))
        self.assertEqual(self.queue.dead_letters()["dead_letters"][0]["reason"], "bad")

    def test_state_and_sends_are_in_the_transaction_of_the_completion(self):
        app, other = App(), self.client.queue("bills")
        other.create()

        @app.handler("orders")
        async def handle(message, context):
            await asyncio.sleep(0)
            context.state = (context.state or []) + [message.json()]
            context.send("bills", {"of": message.json()}, workflow=message.workflow)
            if context.attempt == 1:
                raise Retry(after=0)

        self.send(3)
        with Running(app, self.client):
            until(lambda: self.completed() == 3)
        self.assertEqual(other.view()["counts"]["stored"], 3, "a failed attempt sends nothing")
        [bill] = other.receive(wait=5, state=True)
        self.assertEqual(bill.json(), {"of": 1})

    def test_an_outcome_that_cannot_be_told_is_a_failed_attempt_with_its_reason(self):
        app, reasons = App(), {}

        @app.handler("orders")
        def handle(message, context):
            if context.attempt == 1:
                return MISTAKES[message.workflow](context)
            reasons[message.workflow, message.subject] = message.envelope["attempts"][0]["reason"]

        @app.handler("orders", subject="async")
        async def handle_async(message, context):
            return handle(message, context)

        self.queue.send_batch([Message(workflow=workflow, position=1) for workflow in MISTAKES])
        self.queue.send(workflow="leaves", subject="async", position=2)
        # With one place, the first that is not let go would be the last.
        with self.assertLogs("seriatim"), Running(app, self.client, concurrency=1):
            until(lambda: self.completed() == len(MISTAKES) + 1, 10)
        for (workflow, _), reason in reasons.items():
            self.assertIn(REASONS[workflow], reason)

    def test_an_app_may_have_each_byte_of_a_body_of_json(self):
        app, seen = App(raw=True), []

        @app.handler("orders")
        def handle(message, context):
            seen.append((message.text, message.json()))

        self.queue.send("[1.10 ]", workflow="w", position=1, content_type="application/json")
        with Running(app, self.client):
            until(lambda: self.completed() == 1)
        self.assertEqual(seen, [("[1.10 ]", [1.1])])

    def test_a_body_that_python_cannot_read_fails_alone(self):
        app, reasons = App(), {}

        @app.handler("orders")
        def handle(message, context):
            if context.attempt > 1:
                reasons[message.workflow] = message.envelope["attempts"][0]["reason"]
                self.assertEqual(message.text, bodies[message.workflow].strip().replace("\n", " "), "it is on one line")
            else:
                message.json()

        bodies = {"before": "1", "deep": f"\n[\n{DEEP}]\n", "digits": DIGITS, "behind": '{"body": {"state": "\\"[{"}}'}
        json = {"content_type": "application/json", "position": 1}
        self.queue.send_batch([Message(body, workflow=workflow, **json) for workflow, body in bodies.items()])
        with self.assertLogs("seriatim"), Running(app, self.client):
            until(lambda: self.completed() == len(bodies), 10)
        self.assertIn("RecursionError", reasons.pop("deep"))
        # Older versions of Python read a number of any length.
        if 0 < getattr(sys, "get_int_max_str_digits", int)() < 5_000:
            self.assertIn("ValueError", reasons.pop("digits"))
        self.assertEqual(reasons, {})

    def test_a_state_that_python_cannot_read_is_bytes(self):
        app, seen = App(), {}

        @app.handler("orders")
        def handle(message, context):
            seen[message.workflow] = context.state

        self.send(2)
        self.queue.receive()[0].complete(state=DEEP.encode())
        self.assertEqual(self.queue.workflow("w").state(), DEEP.encode())
        self.send(1, "other")
        with Running(app, self.client):
            until(lambda: self.completed() == 3, 10)
        self.assertEqual(seen, {"w": DEEP.encode(), "other": None})

    def test_a_lock_is_renewed_as_long_as_the_handler_runs(self):
        app, attempts, go_on = App(), [], threading.Event()
        self.queue.create(order="position", delivery={"lock": "1s"})

        @app.handler("orders")
        def handle(message, context):
            attempts.append(context.attempt)
            # Longer than two locks.
            go_on.wait(2.5)

        self.send(1)
        with Running(app, self.client):
            until(lambda: self.completed() == 1)
        self.assertEqual(attempts, [1])

    def test_a_worker_that_stops_finishes_what_it_has_begun(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "slow.py")
            path.write_text(
                "import time\nfrom seriatim import App\napp = App()\n"
                "@app.handler('orders')\ndef handle(message, context):\n"
                "    print('begun', flush=True)\n    time.sleep(1)\n"
            )
            env = {**os.environ, "PYTHONPATH": SOURCES, "SERIATIM_URL": self.daemon.url}
            argv = [sys.executable, "-m", "seriatim", "run", "slow:app", "--concurrency", "1"]
            self.send(2)
            with subprocess.Popen(argv, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as worker:
                self.assertEqual(worker.stdout.readline(), b"begun\n")
                worker.send_signal(signal.SIGTERM)
                self.assertEqual(worker.wait(30), 0)
        self.assertEqual(self.completed(), 1)
        [delivery] = self.queue.receive(wait=5)
        self.assertEqual((delivery.text, delivery.delivery_count), ("2", 1), "what was not begun is not counted")

    def test_two_handlers_for_one_subject_are_a_mistake(self):
        app = App()
        app.handler("orders")(lambda message, context: None)
        app.handler("orders", subject="paid")(lambda message, context: None)
        with self.assertRaises(ValueError):
            app.handler("orders", subject="paid")(lambda message, context: None)


class OfLoops(unittest.TestCase):
    def test_a_loop_that_could_not_be_begun_is_begun_by_the_next_that_asks(self):
        loop, answers = Loop(), []

        async def answer():
            return 7

        left = answer()
        with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread")):
            with self.assertRaises(RuntimeError):
                loop.run(left)
        left.close()
        # In a thread of its own: where nobody runs the loop, it would wait for ever.
        asking = threading.Thread(target=lambda: answers.append(loop.run(answer())), daemon=True)
        asking.start()
        asking.join(30)
        self.assertEqual(answers, [7])


class Heard(logging.Handler):
    """Says when something was logged."""

    def __init__(self, text):
        super().__init__()
        self.text, self.event = text, threading.Event()

    def emit(self, record):
        if self.text in record.getMessage():
            self.event.set()


class OfRefusedSettlements(WithDaemon):
    @contextlib.contextmanager
    def heard(self, text):
        heard, logger = Heard(text), logging.getLogger("seriatim")
        logger.addHandler(heard)
        yield heard.event
        logger.removeHandler(heard)

    def test_what_the_daemon_refuses_for_good_is_a_failed_attempt_with_its_reason(self):
        app, reasons = App(), {}

        @app.handler("orders")
        def handle(message, context):
            if context.attempt > 1:
                reasons[message.workflow] = message.envelope["attempts"][0]["reason"]
            elif message.workflow == "sends":
                context.send("missing", "x")
            else:
                context.state = "x" * (1024 * 1024 + 1)

        self.queue.send_batch([Message(workflow=workflow, position=1) for workflow in ("sends", "sets")])
        with self.assertLogs("seriatim"), Running(app, self.client):
            until(lambda: self.completed() == 2, PATIENCE)
        self.assertIn("missing", reasons["sends"])
        self.assertIn("state", reasons["sets"])

    def full(self):
        """An app whose handler sends to a workflow that is full; its queue, and which attempts the handler has seen."""
        app, attempts, bills = App(), [], self.client.queue("bills")
        bills.create(order="position", limits={"early_max": 1})
        bills.send("waits for the first", workflow="w", position=2)

        @app.handler("orders")
        def handle(message, context):
            attempts.append(context.attempt)
            context.send("bills", message.body, workflow="w", position=3)

        self.queue.send("x", workflow="w", position=1)
        return app, bills, attempts

    def test_a_completion_without_room_waits_for_it_with_the_message_in_hand(self):
        app, bills, attempts = self.full()
        with self.assertLogs("seriatim"), self.heard("no room") as waits, Running(app, self.client):
            self.assertTrue(waits.wait(PATIENCE))
            bills.send("the first", workflow="w", position=1)
            until(lambda: self.completed() == 1, PATIENCE)
        self.assertEqual((attempts, len(bills.receive_run())), ([1], 3))

    def test_what_finds_no_room_in_time_is_given_back_uncounted(self):
        app, bills, attempts = self.full()
        with self.assertLogs("seriatim"), mock.patch.object(settling, "ROOM_FOR", 0), Running(app, self.client):
            until(lambda: len(attempts) > 1, PATIENCE)
        self.assertEqual(set(attempts), {1})

    def test_a_worker_that_stops_waits_for_no_room(self):
        app, bills, attempts = self.full()
        with self.assertLogs("seriatim"), self.heard("no room") as waits, Running(app, self.client):
            self.assertTrue(waits.wait(PATIENCE))
        [delivery] = self.queue.receive(wait=PATIENCE)
        self.assertEqual((delivery.delivery_count, attempts), (1, [1]))


class OfPrograms(unittest.TestCase):
    def test_a_program_handles_at_once_as_many_as_the_daemon_hands_it(self):
        text = (
            "import threading\nfrom seriatim import App\napp, all = App(), threading.Barrier(64)\n"
            f"@app.handler('orders')\ndef handle(message, context): all.wait({PATIENCE})\n"
            "app.run()\n"
        )
        message = {"queue": "orders", "sequence_number": 1, "delivery_count": 1}
        lines = "".join(json.dumps({"id": id, "message": message}) + "\n" for id in range(64))
        env = {**os.environ, "PYTHONPATH": SOURCES, "SERIATIM_CHILD": "store#1"}
        ran = subprocess.run([sys.executable, "-c", text], input=lines.encode(), env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.assertEqual({json.loads(line)["outcome"] for line in ran.stdout.splitlines()}, {"complete"})

    def test_a_daemon_runs_an_app_as_a_program(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "handle.py").write_text(
                "from seriatim import App, DeadLetter\napp = App()\n"
                "@app.handler('orders')\nasync def handle(message, context):\n"
                "    print('this is no answer')\n"
                "    if message.text == '2': raise DeadLetter('bad')\n"
                "    if message.text == '3' and context.attempt == 1: raise RuntimeError('again')\n"
                "    context.state = (context.state or []) + [message.json()]\n"
                "app.run()\n"
            )
            pathlib.Path(folder, "orders.toml").write_text(
                'order = "position"\n[retry]\ndelays = ["1ms"]\n'
                f'[[handler]]\npersistent = ["{sys.executable}", "handle.py"]\nenv = {{ PYTHONPATH = "{SOURCES}" }}\n'
            )
            with DevDaemon(folder) as daemon, daemon.client() as client:
                queue = client.queue("orders")
                queue.send_batch([Message(str(n), workflow="w", position=n) for n in range(1, 5)])
                until(lambda: queue.view()["counts"]["completed"] == 3)
                self.assertEqual(queue.view()["counts"]["dead_lettered"], 1)
                state = queue.workflow("w").state()
                self.assertEqual(state, [1, 3, 4])
                self.assertIn("this is no answer", daemon.log())

    def test_a_body_that_python_cannot_read_does_not_end_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "handle.py").write_text(
                "import os\nfrom seriatim import App\napp = App()\n"
                "@app.handler('orders')\ndef handle(message, context):\n"
                "    if context.attempt == 1: context.state = [os.getpid(), message.json()]\n"
                "    else: context.state = [os.getpid(), message.envelope['attempts'][0]['reason']]\n"
                "app.run()\n"
            )
            pathlib.Path(folder, "orders.toml").write_text(
                '[retry]\ndelays = ["1ms"]\n'
                f'[[handler]]\npersistent = ["{sys.executable}", "handle.py"]\nenv = {{ PYTHONPATH = "{SOURCES}" }}\n'
            )
            with DevDaemon(folder) as daemon, daemon.client() as client:
                queue = client.queue("orders")
                for workflow, body in [("before", "1"), ("deep", DEEP), ("behind", "2")]:
                    queue.send(body, workflow=workflow, content_type="application/json")
                    until(lambda: queue.workflow(workflow).state())
                states = [queue.workflow(workflow).state() for workflow in ["before", "deep", "behind"]]
                self.assertEqual(len({process for process, _ in states}), 1, "it is one process all the time")
                self.assertIn("RecursionError", states[1][1])

    def test_a_program_answers_an_outcome_that_cannot_be_told_with_its_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "handle.py").write_text(
                "import sys\nfrom test_app import MISTAKES, App\napp = App()\n"
                "@app.handler('orders')\ndef handle(message, context):\n"
                "    if context.attempt == 1: return MISTAKES[message.workflow](context)\n"
                "    context.state = message.envelope['attempts'][0]['reason']\n"
                "app.run()\n"
            )
            here = os.path.dirname(os.path.abspath(__file__))
            pathlib.Path(folder, "orders.toml").write_text(
                'order = "position"\n[retry]\ndelays = ["1ms"]\n'
                f'[[handler]]\npersistent = ["{sys.executable}", "handle.py"]\nenv = {{ PYTHONPATH = "{SOURCES}:{here}" }}\n'
            )
            with DevDaemon(folder) as daemon, daemon.client() as client:
                queue = client.queue("orders")
                queue.send_batch([Message(workflow=workflow, position=1) for workflow in MISTAKES])
                until(lambda: queue.view()["counts"]["completed"] == len(MISTAKES), 10)
                for workflow, reason in REASONS.items():
                    self.assertIn(reason, queue.workflow(workflow).state())


if __name__ == "__main__":
    unittest.main()
