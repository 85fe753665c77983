"""What a worker promises of the locks on what it has in hand, towards a daemon that plays a script, and with a moved clock."""

import datetime
import http.server
import json
import sys
import threading
import unittest

from seriatim import App, Client, LockLost, NotFound, Unavailable, Unreachable
from seriatim.worker import Worker

#: As long as a test waits for what has to come.
PATIENCE = 10
#: How long the locks of the script last, in seconds.
LOCK = 2


def instant(seconds):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class ScriptedDaemon(http.server.ThreadingHTTPServer):
    """Hands out the deliveries once, each under a lock; ``renew`` says with which status a renewal is answered, if it is.

    Its wall clock is ``ahead`` of that of the worker.
    """

    # A thread that outlived its test could write while the interpreter ends, which aborts it.
    daemon_threads = False

    def __init__(self, deliveries, renew, ahead=0):
        super().__init__(("127.0.0.1", 0), Answers)
        self.left, self.renew, self.ahead = list(deliveries), renew, ahead
        self.renewals, self.changed = dict.fromkeys(deliveries, 0), threading.Condition()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def lock(self):
        return {"locked_until": instant(self.ahead + LOCK), "lock_ms": LOCK * 1000}

    def handle_error(self, request, client_address):
        """A worker that waited no longer for an answer is no mistake; anything else is shown."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def wait_for_renewals(self, delivery, count):
        with self.changed:
            return self.changed.wait_for(lambda: self.renewals[delivery] >= count, PATIENCE)


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        daemon, verb = self.server, self.path.rsplit("/", 1)[-1]
        if verb == "receive":
            given, daemon.left = daemon.left, []
            common = {"queue": "orders", "sequence_number": 1, "delivery_count": 1, **daemon.lock()}
            self.answer(200, {"deliveries": [{"delivery": name, **common} for name in given]})
        elif verb == "renew":
            name = self.path.split("/")[-2]
            with daemon.changed:
                daemon.renewals[name] += 1
                daemon.changed.notify_all()
            status = daemon.renew(name)
            if status is None:
                self.close_connection = True
            else:
                self.answer(status, daemon.lock() if status == 200 else {"code": "lock_lost" if status == 409 else "busy"})
        else:
            self.answer(200, {"results": [{}]})

    def answer(self, status, fields):
        body = json.dumps(fields).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class OfLocks(unittest.TestCase):
    def play(self, deliveries, renew, ahead=0, renew_for=300):
        """A worker with these deliveries in hand until the test ends: the daemon, and the contexts of the handlers."""
        daemon = ScriptedDaemon(deliveries, renew, ahead)
        self.addCleanup(daemon.server_close)
        self.addCleanup(daemon.shutdown)
        client = Client(f"http://127.0.0.1:{daemon.server_port}", retry_for=0)
        self.addCleanup(client.close)
        app, contexts, begun, ended = App(), {}, threading.Semaphore(0), threading.Event()

        @app.handler("orders")
        def handle(message, context):
            contexts[message.delivery] = context
            begun.release()
            ended.wait(60)

        worker = Worker(app, client, len(deliveries), renew_for)
        thread = threading.Thread(target=worker.run)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(ended.set)
        self.addCleanup(worker.stop)
        for _ in deliveries:
            self.assertTrue(begun.acquire(timeout=PATIENCE))
        return daemon, contexts

    def test_a_lock_is_renewed_in_time_by_a_worker_whose_clock_is_behind(self):
        daemon, contexts = self.play(["d"], lambda _: 200, ahead=3600)
        self.assertTrue(daemon.wait_for_renewals("d", 2))
        self.assertFalse(contexts["d"].lost.is_set())

    def test_a_renewal_that_hangs_keeps_no_other_lock_from_being_renewed(self):
        go_on = threading.Event()
        with self.assertLogs("seriatim"):
            daemon, contexts = self.play(["a", "b", "c"], lambda name: 200 if name == "c" else go_on.wait(60) and 200)
            self.addCleanup(go_on.set)
            # The locks on the others are over without an answer, and known to be.
            self.assertTrue(daemon.wait_for_renewals("c", 3))
            self.assertTrue(contexts["a"].lost.wait(PATIENCE) and contexts["b"].lost.wait(PATIENCE))
        self.assertFalse(contexts["c"].lost.is_set())

    def test_a_daemon_that_is_busy_has_not_taken_the_lock(self):
        answers = iter([503, 429])
        with self.assertLogs("seriatim"):
            daemon, contexts = self.play(["d"], lambda _: next(answers, 200))
            self.assertTrue(daemon.wait_for_renewals("d", 4))
        self.assertFalse(contexts["d"].lost.is_set())

    def test_a_lock_that_the_daemon_says_is_lost_is_lost_at_once(self):
        with self.assertLogs("seriatim"):
            daemon, contexts = self.play(["d"], lambda _: 409)
            self.assertTrue(contexts["d"].lost.wait(PATIENCE))
        self.assertEqual(daemon.renewals["d"], 1)

    def test_a_lock_is_lost_when_its_time_is_over_and_nobody_has_answered(self):
        with self.assertLogs("seriatim"):
            _, contexts = self.play(["d"], lambda _: None)
            self.assertTrue(contexts["d"].lost.wait(PATIENCE))

    def test_a_lock_is_renewed_no_longer_than_the_worker_is_told(self):
        with self.assertLogs("seriatim"):
            daemon, contexts = self.play(["d"], lambda _: 200, renew_for=datetime.timedelta(0))
            self.assertTrue(contexts["d"].lost.wait(PATIENCE))
        self.assertEqual(daemon.renewals["d"], 0)


class Clock:
    """A monotonic clock that a test moves."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Delivery:
    """A delivery whose renewals are answered as the test says: by nothing, or by an error."""

    delivery, delivery_count, state, lock_seconds = "d", 1, None, 30.0

    def __init__(self):
        self.error, self.timeouts = None, []

    def renew(self, timeout):
        self.timeouts.append(timeout)
        if self.error is not None:
            raise self.error


class OfTheirTime(unittest.TestCase):
    """``Held`` with a moved clock, counted from 1000: asked for then, and received four seconds later."""

    def setUp(self):
        from seriatim.locks import Held

        self.clock, self.delivery = Clock(), Delivery()
        self.clock.now = 1004.0
        self.held = Held(self.delivery, 1000.0, 300.0, self.clock)

    def due(self, at):
        self.clock.now = at
        return self.held.is_due()

    def test_half_of_the_time_since_it_was_asked_for_is_waited(self):
        self.assertEqual([self.due(1014.9), self.due(1015.0)], [False, True])
        self.held.renew()
        self.assertEqual([self.due(1029.9), self.due(1030.0)], [False, True])

    def test_a_try_that_fails_leaves_time_for_others_and_prolongs_nothing(self):
        for error in [Unreachable("gone"), Unavailable("busy", "busy", 503), NotFound("http_404", "", 404), RuntimeError("other")]:
            with self.subTest(error=error), self.assertLogs("seriatim"):
                self.setUp()
                self.delivery.error = error
                self.clock.now = 1024.0
                self.held.renew()
                self.assertEqual(self.delivery.timeouts, [5.0], "half of what is left")
                self.assertEqual([self.due(1025.2), self.due(1025.3), self.due(1033.9)], [False, True, True])
                self.assertFalse(self.held.context.lost.is_set())
                self.due(1034.0)
                self.assertTrue(self.held.context.lost.is_set())

    def test_it_is_lost_when_it_is_over_also_while_a_renewal_hangs(self):
        answered, hangs = threading.Event(), threading.Event()
        self.delivery.renew = lambda timeout: (hangs.set(), answered.wait(PATIENCE))
        self.clock.now = 1020.0
        self.held.begin_renewal()
        self.assertTrue(hangs.wait(PATIENCE))
        self.assertEqual((self.due(1033.9), self.held.context.lost.is_set()), (False, False))
        with self.assertLogs("seriatim"):
            self.assertEqual((self.due(1034.0), self.held.context.lost.is_set()), (False, True))
        answered.set()

    def test_without_a_renewal_it_is_lost_when_it_is_over_since_it_was_received(self):
        self.assertEqual((self.due(1033.9), self.held.context.lost.is_set()), (True, False))
        with self.assertLogs("seriatim"):
            self.assertEqual((self.due(1034.0), self.held.context.lost.is_set()), (False, True))

    def test_a_renewed_one_is_lost_when_it_is_over_since_the_renewal_was_begun(self):
        self.clock.now = 1020.0
        self.held.renew()
        self.assertEqual((self.due(1049.9), self.held.context.lost.is_set()), (True, False))
        with self.assertLogs("seriatim"):
            self.assertEqual((self.due(1050.0), self.held.context.lost.is_set()), (False, True))

    def test_one_that_was_settled_meanwhile_is_not_lost(self):
        self.held.has_ended, self.delivery.error = True, LockLost("lock_lost", "", 409)
        self.held.renew()
        self.due(5000.0)
        self.assertFalse(self.held.context.lost.is_set())

    def test_after_five_minutes_it_runs_out(self):
        self.clock.now, renewals = 1004.0, 0
        with self.assertLogs("seriatim") as logs:
            while not self.held.context.lost.is_set():
                if self.due(self.clock.now + 1):
                    self.held.renew()
                    renewals += 1
        # Every 15 seconds; the last is at 1300 and lasts half a minute.
        self.assertEqual((renewals, self.clock.now), (20, 1330.0))
        self.assertIn("not renewed any more", logs.output[-1])


if __name__ == "__main__":
    unittest.main()
