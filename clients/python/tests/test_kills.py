"""Nothing is lost, doubled or overtaken when the daemon and the worker are killed."""

import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from seriatim import Client, Message
from seriatim.testing import program

SOURCES = str(pathlib.Path(__file__).resolve().parent.parent / "src")
WORKFLOWS, MESSAGES, KILLS = 8, 60, 8

#: Appends the position to the state of the workflow, and sends it on: both are in the transaction of the completion.
APP = """
import time
from seriatim import App
app = App()
@app.handler("orders")
def handle(message, context):
    context.state = (context.state or []) + [message.json()]
    context.send("copies", message.json(), workflow=message.workflow)
    time.sleep(0.002)
"""


class Daemon:
    """A daemon on a store that outlives it."""

    def __init__(self, folder):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        self.folder = folder
        pathlib.Path(folder, "workflows").mkdir()
        self.start()

    def start(self):
        argv = [program(), "run", "workflows", "--data", "data", "--http", self.address]
        self.process = subprocess.Popen(
            argv, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )

    def kill(self):
        self.process.kill()
        self.process.wait()


class UnderKills(unittest.TestCase):
    def test_each_message_is_handled_once_and_in_order(self):
        seed = int(os.environ.get("SERIATIM_SEED") or random.randrange(2**32))
        chance = random.Random(seed)
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "handlers.py").write_text(APP)
            daemon = Daemon(folder)
            worker = self.work(folder, daemon)
            try:
                with Client(f"http://{daemon.address}", retry_for=60) as client:
                    self.play(chance, client, daemon, folder, worker)
                    self.check(client, seed)
            finally:
                worker[0].kill()
                worker[0].wait()
                daemon.kill()

    def work(self, folder, daemon):
        env = {**os.environ, "PYTHONPATH": SOURCES, "SERIATIM_URL": f"http://{daemon.address}"}
        argv = [sys.executable, "-m", "seriatim", "run", "handlers:app"]
        return [subprocess.Popen(argv, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)]

    def play(self, chance, client, daemon, folder, worker):
        orders, copies = client.queue("orders"), client.queue("copies")
        orders.create(order="position", delivery={"lock": "1s", "count_max": 1000})
        copies.create()
        sends = [(f"w{workflow}", n) for workflow in range(WORKFLOWS) for n in range(1, MESSAGES + 1)]
        chance.shuffle(sends)
        part = len(sends) // KILLS
        for kill in range(KILLS):
            for workflow, n in sends[kill * part : (kill + 1) * part]:
                orders.send(n, workflow=workflow, position=n, id=f"{workflow}-{n}")
            if chance.random() < 0.5:
                daemon.kill()
                daemon.start()
            else:
                worker[0].kill()
                worker[0].wait()
                worker[:] = self.work(folder, daemon)

    def check(self, client, seed):
        orders, copies, ends = client.queue("orders"), client.queue("copies"), time.monotonic() + 120
        while orders.view()["counts"]["completed"] < WORKFLOWS * MESSAGES:
            self.assertLess(time.monotonic(), ends, f"not all is handled in time; SERIATIM_SEED={seed}")
            time.sleep(0.05)
        for workflow in range(WORKFLOWS):
            state = orders.workflow(f"w{workflow}").state()
            self.assertEqual(state, list(range(1, MESSAGES + 1)), f"SERIATIM_SEED={seed}")
        copied = {}
        while deliveries := copies.receive(max=100, state=False):
            for delivery in deliveries:
                copied.setdefault(delivery.workflow, []).append(delivery.json())
            copies.complete(deliveries)
        for workflow, numbers in copied.items():
            self.assertEqual(numbers, list(range(1, MESSAGES + 1)), f"{workflow}; SERIATIM_SEED={seed}")
        self.assertEqual(len(copied), WORKFLOWS)


if __name__ == "__main__":
    unittest.main()
