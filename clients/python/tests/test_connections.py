"""What the client makes of connections that end, towards a server that ends them."""

import asyncio
import concurrent.futures
import contextlib
import gc
import json
import os
import socket
import struct
import threading
import unittest
import warnings

from seriatim import AsyncClient, Client, Unreachable

#: As long as a test waits for what has to come.
PATIENCE = 10
#: An answer to whatever is asked.
ANSWER = b'{"status": "accepted", "sequence_number": 7, "deliveries": []}'


class RawServer:
    """Answers so many requests at once, each on its own connection, until it ends them."""

    def __init__(self, at_once):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.at_once = threading.Barrier(at_once)
        #: Whether an answer says how long it is; else it ends with its connection.
        self.has_length = True
        self.connections, self.dropped = [], []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, connection.makefile("rb") as read:
            while read.readline():
                fields = [line.decode().lower().split(":", 1) for line in iter(read.readline, b"\r\n")]
                read.read(int(dict(fields).get("content-length", 0)))
                if connection in self.dropped:
                    connection.shutdown(socket.SHUT_RDWR)
                    return
                self.at_once.wait(PATIENCE)
                length = b"Content-Length: %d\r\n" % len(ANSWER) if self.has_length else b""
                connection.sendall(b"HTTP/1.1 200 OK\r\n%s\r\n%s" % (length, ANSWER))
                if not self.has_length:
                    connection.shutdown(socket.SHUT_RDWR)
                    return

    def end_connections(self):
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def reset_connections(self):
        """Ends them without a word, as a daemon does that is killed with something unread."""
        for connection in self.connections:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.shutdown(socket.SHUT_RD)

    def stop(self):
        self._listener.close()
        self.end_connections()


class OfConnections(unittest.TestCase):
    def kept(self, count):
        """A server, and a client that has kept so many connections to it, and asks nothing again after a pause."""
        server = RawServer(count)
        self.addCleanup(server.stop)
        client = Client(server.url, retry_for=0)
        self.addCleanup(client.close)
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            list(pool.map(lambda _: client.status(), range(count)))
        self.assertEqual(len(server.connections), count)
        server.at_once = threading.Barrier(1)
        return server, client.queue("orders")

    def test_connections_that_a_restart_has_ended_are_not_used_again(self):
        for asks in (lambda queue: queue.send("x"), lambda queue: queue.receive()):
            server, queue = self.kept(20)
            server.end_connections()
            server.connections.clear()
            asks(queue)
            self.assertEqual((queue.send("x").sequence_number, queue.receive()), (7, []))
            self.assertEqual(len(server.connections), 1)

    def test_a_request_on_a_kept_connection_that_ends_is_asked_at_once_on_a_new_one(self):
        server, queue = self.kept(20)
        server.dropped = server.connections[:]
        self.assertEqual(queue.send("x").sequence_number, 7)
        self.assertEqual(queue.receive(), [], "the others were closed")

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork here")
    def test_a_forked_process_uses_no_connection_of_its_parent(self):
        server, queue = self.kept(1)
        child = os.fork()
        if child == 0:
            # Nothing of the tests goes on here, whatever comes.
            try:
                queue.receive()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(len(server.connections), 2)
        self.assertEqual((queue.receive(), len(server.connections)), ([], 2), "that of the parent is still there")

    def with_kept(self, count, story):
        """Plays a story with a server, and an asyncio client that has kept so many connections to it."""

        async def play():
            server = RawServer(count)
            self.addCleanup(server.stop)
            async with AsyncClient(server.url, retry_for=0) as client:
                await asyncio.gather(*(client.status() for _ in range(count)))
                self.assertEqual(len(server.connections), count)
                server.at_once = threading.Barrier(1)
                await story(server, client)

        asyncio.run(play())

    def test_a_connection_of_asyncio_that_was_reset_is_not_used_again(self):
        async def story(server, client):
            server.reset_connections()
            server.connections.clear()
            for _, _, (reader, _) in client._transport._idle:
                with contextlib.suppress(ConnectionResetError):
                    await asyncio.wait_for(reader.read(), PATIENCE)
            self.assertEqual(await client.queue("orders").receive(), [])
            self.assertEqual(len(server.connections), 1)

        self.with_kept(20, story)

    def test_a_request_of_asyncio_on_a_kept_connection_that_ends_is_asked_at_once_on_a_new_one(self):
        async def story(server, client):
            server.dropped = server.connections[:]
            queue = client.queue("orders")
            self.assertEqual((await queue.send("x")).sequence_number, 7)
            self.assertEqual(await queue.receive(), [], "the others were closed")

        self.with_kept(20, story)

    def test_a_client_of_asyncio_may_be_used_in_one_loop_after_the_other(self):
        server = RawServer(1)
        self.addCleanup(server.stop)
        client = AsyncClient(server.url, retry_for=0)
        with warnings.catch_warnings():
            # A loop that ends with connections says so.
            warnings.simplefilter("ignore", ResourceWarning)
            self.assertEqual([asyncio.run(client.queue("orders").receive()) for _ in range(3)], [[], [], []])
            asyncio.run(client.close())
            gc.collect()

    def test_an_answer_that_ends_with_its_connection_is_read_to_its_end(self):
        async def status(url):
            async with AsyncClient(url) as client:
                return [await client.status() for _ in range(2)]

        server = RawServer(1)
        self.addCleanup(server.stop)
        server.has_length = False
        with Client(server.url) as client:
            answers = [client.status(), *asyncio.run(status(server.url))]
        self.assertEqual(answers, 3 * [json.loads(ANSWER)])

    def test_a_daemon_that_does_not_answer_in_time_is_said_to_be_one(self):
        async def status(url):
            async with AsyncClient(url, timeout=0.05, retry_for=0) as client:
                await client.status()

        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            with self.assertRaisesRegex(Unreachable, "it did not answer in time"):
                asyncio.run(status(url))


if __name__ == "__main__":
    unittest.main()
