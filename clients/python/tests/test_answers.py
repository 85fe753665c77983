"""What the client makes of answers, towards a server that gives those of a list."""

import http.server
import json
import threading
import unittest

from seriatim import App, Client
from seriatim.worker import Worker

#: As long as a test waits for what has to come.
PATIENCE = 10


class ListedAnswers(http.server.ThreadingHTTPServer):
    """Answers each request with the next of the list, a status and a body, and then with the last again; keeps the requests."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, *answers):
        super().__init__(("127.0.0.1", 0), Answer)
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

    do_GET = do_POST

    def log_message(self, *_):
        pass


class OfAnswers(unittest.TestCase):
    def server(self, *answers):
        server = ListedAnswers(*answers)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def test_a_worker_goes_on_after_an_answer_that_makes_no_sense(self):
        delivery = {"delivery": "d", "queue": "orders", "sequence_number": 1, "delivery_count": 1}
        lock = {"locked_until": "2030-01-01T00:00:00Z", "lock_ms": 30_000}
        server = self.server((200, {"deliveries": [{}]}), (200, {"deliveries": [{**delivery, **lock}], "results": [{}]}))
        app, handled = App(), threading.Event()
        app.handler("orders")(lambda message, context: handled.set())
        with Client(server.url) as client:
            worker = Worker(app, client, 1)
            thread = threading.Thread(target=worker.run)
            with self.assertLogs("seriatim"):
                thread.start()
                self.assertTrue(handled.wait(PATIENCE))
            worker.stop()
            thread.join()


if __name__ == "__main__":
    unittest.main()
