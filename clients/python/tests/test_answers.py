"""What the client makes of answers, towards a server that gives those of a list."""

import asyncio
import datetime
import http.server
import json
import socket
import sys
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

from seriatim import App, AsyncClient, Client, NotFound, Refused, Unauthorized, Unavailable, Unreachable, reading
from seriatim.message import ReceivedRun
from seriatim.reading import load
from seriatim.worker import Worker

#: What is answered where it is not known what was done: by a node of a cluster, by a proxy, by one that says nothing, and by a
#: daemon whose engine has stopped.
NOT_KNOWN = [
    (504, {"status": 504, "code": "unanswered", "detail": "no answer came"}),
    (502, b"<h1>Bad Gateway</h1>"),
    (502, {"code": 14, "message": "unavailable"}),
    (504, b""),
    (503, {"status": 503, "code": "stopped", "detail": "the engine has stopped"}),
]
#: As long as a test waits for what has to come.
PATIENCE = 10


class ListedAnswers(http.server.ThreadingHTTPServer):
    """Answers each request with the next of the list, a status and a body, and then with the last again; keeps the requests."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, *answers, host="127.0.0.1"):
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, 0), Answer)
        self.answers, self.asked = list(answers), []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append((self.path, self.headers))
        answers = self.server.answers
        status, answer = answers.pop(0) if len(answers) > 1 else answers[0]
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_DELETE = do_POST

    def log_message(self, *_):
        pass


class OfAnswers(unittest.TestCase):
    def server(self, *answers):
        server = ListedAnswers(*answers)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def test_what_is_not_known_is_asked_again_under_the_same_key(self):
        async def send(url):
            async with AsyncClient(url) as client:
                return await client.queue("orders").send("x")

        receipt = (201, {"status": "accepted", "sequence_number": 7})
        for answer in [*NOT_KNOWN, (503, b"no server is there")]:
            server = self.server(answer, receipt)
            with Client(server.url) as client:
                self.assertEqual(client.queue("orders").send("x").sequence_number, 7)
            server.answers[:] = [answer, receipt]
            self.assertEqual(asyncio.run(send(server.url)).sequence_number, 7)
            keys = [headers["Idempotency-Key"] for _, headers in server.asked]
            self.assertEqual((keys[0], keys[2]), (keys[1], keys[3]))
            self.assertNotEqual(keys[0], keys[2])

    def test_what_may_not_be_asked_again_is_said_to_be_not_known(self):
        for answer in NOT_KNOWN:
            with Client(self.server(answer).url) as client, self.assertRaises(Unreachable):
                client.queue("orders").receive()
        with Client(self.server((503, b"no server is there")).url) as client, self.assertRaises(Unavailable):
            client.queue("orders").receive()

    def test_what_somebody_between_answers_is_an_error_of_its_kind(self):
        for status, body, kind in [
            (301, b"", Refused),
            (308, b"<html>", Refused),
            (401, b"<html>", Unauthorized),
            (403, b'{"status": "error"}', Unauthorized),
            (404, b"", NotFound),
            (413, b"<html>", Refused),
            (429, b"null", Unavailable),
            (500, b"<html>", Unreachable),
            (503, b"<html>", Unavailable),
        ]:
            with self.subTest(status), Client(self.server((status, body)).url) as client, self.assertRaises(kind) as raised:
                client.queue("orders").cancel(1)
            self.assertIn(f"http_{status}", str(raised.exception))

    def test_truth_is_asked_for_in_the_words_of_the_daemon(self):
        server = self.server((200, {}))
        with Client(server.url) as client:
            client.queue("orders").messages(raw=True)
        self.assertEqual(server.asked[0][0], "/v1/queues/orders/messages?limit=100&raw=true")

    def test_a_key_that_was_read_with_its_line_is_that_key(self):
        server = self.server((200, {}))

        async def status():
            async with AsyncClient(server.url, "secret\n") as client:
                await client.status()

        with Client(server.url, " secret\n") as client:
            client.status()
        asyncio.run(status())
        self.assertEqual([headers["Authorization"] for _, headers in server.asked], 2 * ["Bearer secret"])
        for key in ("a\r\nX: b", "a\0", "\u00e9"):
            with self.subTest(key), self.assertRaises(ValueError):
                AsyncClient(server.url, key)

    def test_an_address_of_ipv6_is_named_in_brackets(self):
        try:
            server = ListedAnswers((200, {}), host="::1")
        except OSError as error:
            self.skipTest(f"there is no IPv6 here: {error}")
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        url = f"http://[::1]:{server.server_port}"

        async def status():
            async with AsyncClient(url) as client:
                await client.status()

        asyncio.run(status())
        with Client(url) as client:
            client.status()
        self.assertEqual([f"http://{headers['Host']}" for _, headers in server.asked], [url, url])

    def test_the_settlement_of_a_run_is_asked_again(self):
        messages = (200, {"run": "r", "deliveries": [{"queue": "orders", "sequence_number": 1, "delivery_count": 1}]})
        answers = [messages, NOT_KNOWN[0], (200, {})]
        server = self.server(*answers)

        async def settle():
            async with AsyncClient(server.url) as client:
                await (await client.queue("orders").receive_run()).settle()

        with Client(server.url) as client:
            client.queue("orders").receive_run().settle()
        server.answers[:] = answers
        asyncio.run(settle())
        self.assertEqual([path.rsplit("/", 1)[-1] for path, _ in server.asked], 2 * ["receive", "settle", "settle"])

    def test_pages_of_what_does_not_go_on_are_followed_to_the_last(self):
        pages = [(200, {"blocked": [1], "after": "a/w"}), (200, {"blocked": [], "after": "b/"}), (200, {"blocked": [2]})]
        server = self.server(*pages)

        async def blocked():
            async with AsyncClient(server.url) as client:
                return await client.queue("orders").blocked()

        with Client(server.url) as client:
            self.assertEqual(client.blocked(), [1, 2])
        server.answers[:] = pages
        self.assertEqual(asyncio.run(blocked()), [1, 2])
        first, of_queue = "/v1/blocked?limit=1000", "/v1/blocked?queue=orders&limit=1000"
        expected = [path + after for path in (first, of_queue) for after in ("", "&after=a%2Fw", "&after=b%2F")]
        self.assertEqual([path for path, _ in server.asked], expected)

    def work_until(self, server, app, handled):
        """Lets a worker of one place work until something was handled, and has complained before."""
        with Client(server.url) as client:
            worker = Worker(app, client, 1)
            thread = threading.Thread(target=worker.run)
            with self.assertLogs("seriatim"):
                thread.start()
                self.assertTrue(handled.wait(PATIENCE))
            worker.stop()
            thread.join()

    def test_a_worker_goes_on_after_an_answer_that_makes_no_sense(self):
        delivery = {"delivery": "d", "queue": "orders", "sequence_number": 1, "delivery_count": 1}
        lock = {"locked_until": "2030-01-01T00:00:00Z", "lock_ms": 30_000}
        server = self.server((200, {"deliveries": [{}]}), (200, {"deliveries": [{**delivery, **lock}], "results": [{}]}))
        app, handled = App(), threading.Event()
        app.handler("orders")(lambda message, context: handled.set())
        self.work_until(server, app, handled)

    def test_a_worker_gives_back_what_no_thread_can_be_started_for_and_goes_on(self):
        lock = {"locked_until": "2030-01-01T00:00:00Z", "lock_ms": 30_000}
        first, second = ({"delivery": d, "queue": "orders", "sequence_number": 1, "delivery_count": 1, **lock} for d in "de")
        server = self.server((200, {"deliveries": [first]}), (200, {}), (200, {"deliveries": [second], "results": [{}]}))
        app, handled, seen = App(), threading.Event(), []

        @app.handler("orders")
        def handle(message, context):
            seen.append(message.delivery)
            handled.set()

        start, failures = ThreadPoolExecutor._adjust_thread_count, [RuntimeError("can't start new thread")]

        def fails_once(pool):
            if failures:
                raise failures.pop()
            start(pool)

        with mock.patch.object(ThreadPoolExecutor, "_adjust_thread_count", fails_once):
            self.work_until(server, app, handled)
        released = [path for path, _ in server.asked if path.endswith("/d/release")]
        self.assertEqual((len(released), "d" in seen), (1, False), "it is handled by whoever gets it next")


#: JSON that Python's parser does not take, in which bodies stand.
DEEP = "[" * 100_000 + "]" * 100_000


def steps_of(text):
    """How many lines of Python it takes to read a text."""
    lines = []

    def trace(frame, event, _):
        if frame.f_code.co_filename == reading.__file__:
            lines.append(event)
        return trace

    traced = sys.gettrace()
    sys.settrace(trace)
    try:
        load(text)
    finally:
        sys.settrace(traced)
    return len(lines)


class OfRuns(unittest.TestCase):
    def test_the_message_of_a_run_that_is_tried_again_is_said_with_its_delivery_count(self):
        deliveries = [{"queue": "q", "sequence_number": number, "delivery_count": 5 - number} for number in (1, 2, 3)]
        run, abandon, defer = ReceivedRun("q", {"run": "r", "deliveries": deliveries}), {"verb": "abandon"}, {"verb": "defer"}
        for completed, following, more, count in [
            (1, abandon, {}, 3),
            (2, abandon, {}, 2),
            (1, abandon, {"next_delivery_count": 7}, 7),
            (1, defer, {}, None),
            (3, abandon, {}, None),
            (None, None, {}, None),
        ]:
            with self.subTest(completed=completed, next=following, more=more):
                self.assertEqual(run._settlement(completed, following, more).get("next_delivery_count"), count)


    def test_how_the_message_of_a_run_ends_is_said_as_the_daemon_reads_it(self):
        deliveries = [{"queue": "q", "sequence_number": 1, "delivery_count": 1}]
        run, at = ReceivedRun("q", {"run": "r", "deliveries": deliveries}), datetime.datetime(2030, 1, 1, tzinfo=datetime.timezone.utc)
        for name, value, told in [
            ("retry_after", 30, "30000ms"),
            ("retry_after", datetime.timedelta(minutes=1), "60000ms"),
            ("retry_after", "30s", "30s"),
            ("retry_at", at, "2030-01-01T00:00:00.000Z"),
            ("until", at, "2030-01-01T00:00:00.000Z"),
            ("reason", "caf\udce9", "caf?"),
        ]:
            with self.subTest(name=name, value=value):
                self.assertEqual(run._settlement(0, {name: value}, {})["next"], {name: told})


class OfUnreadableBodies(unittest.TestCase):
    def test_each_body_and_state_is_found_whatever_stands_in_it_and_beside_it(self):
        values = ['{"body": {"state": [1]}, "x": "]}"}', '"\\"body\\":[{\\\\"', '"\\\\"', '""', "-1.5e3", "null", "[]", '"ä\\n"', ' [ "{" ] ']
        beside = {'"body': 1, 'x"state': "y", "properties": {"body": 2, "s": 'body"state":[', '\\"body': True}}
        texts = [json.dumps(beside, ensure_ascii=False)[:-1] + f', "body" :{value}, "state":{value}, "n":"}}"}}' for value in values]
        for spaces in ("", "\t "):
            read = load(f'{{"before": [{{}}],{spaces}"rows": [{",".join(texts)}, {{"body":{spaces}{DEEP},"state":{DEEP}{spaces}}}, {{}}]}}')
            *rows, deep, behind = read["rows"]
            self.assertEqual(rows, [json.loads(text) for text in texts])
            self.assertEqual((list(deep), deep["body_text"], behind, read["before"]), (["body_text", "state_base64"], DEEP, {}, [{}]))

    def test_a_body_however_long_takes_as_many_steps_as_a_short_one(self):
        for part in ("[],", '"a",', '{"b":[1]},', "1,"):
            short, long = (f'[{{"body":[{part * count}{DEEP}]}},{{"body":1}}]'.encode() for count in (1, 10_000))
            self.assertEqual(steps_of(short), steps_of(long))

    def test_what_is_no_json_is_not_made_one(self):
        for text in ("", "<h1>", '{"body":}', '{"body":[}', '{"body":"', '{"body":1', DEEP, '{"x":' + DEEP + "}"):
            with self.subTest(text[:20]), self.assertRaises((ValueError, RecursionError)):
                load(text)


if __name__ == "__main__":
    unittest.main()
