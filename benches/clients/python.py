#!/usr/bin/env python3
"""How quick the Python client is beside Azure's own SDK, with the same work on the same daemon.

    python3 -m venv target/sdk && target/sdk/bin/pip install -r tests/sdk/python/requirements.txt
    PYTHONPATH=clients/python/src SERIATIM_PROGRAM=target/release/seriatim target/sdk/bin/python benches/clients/python.py

Messages of 200 bytes are sent in batches of 100, and then received, up to 100 at once, and completed. The contenders take turns;
what counts is the median of the ratios of five rounds.
"""

import argparse
import json
import re
import statistics
import subprocess
import tempfile
import time

from azure.servicebus import ServiceBusClient, ServiceBusMessage

from seriatim import Client, Message
from seriatim.testing import program

BODY = "x" * 200
BATCH = 100


def ours_sends(client, name, count):
    queue = client.queue(name)
    for start in range(0, count, BATCH):
        queue.send_batch([Message(BODY, id=f"{start + n}") for n in range(BATCH)])


def ours_receives(client, name, count):
    queue, done = client.queue(name), 0
    while done < count:
        deliveries = queue.receive(max=BATCH, wait=5)
        queue.complete(deliveries)
        done += len(deliveries)


def azures_sends(client, name, count):
    with client.get_queue_sender(name) as sender:
        for start in range(0, count, BATCH):
            sender.send_messages([ServiceBusMessage(BODY, message_id=f"{start + n}") for n in range(BATCH)])


def azures_receives(client, name, count):
    done = 0
    with client.get_queue_receiver(name, prefetch_count=BATCH) as receiver:
        while done < count:
            for message in receiver.receive_messages(max_message_count=BATCH, max_wait_time=5):
                receiver.complete_message(message)
                done += 1


def timed(work, *arguments):
    started = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - started


def main():
    arguments = argparse.ArgumentParser(description="Compares the Python client with Azure's SDK.")
    arguments.add_argument("--messages", type=int, default=5_000)
    arguments.add_argument("--rounds", type=int, default=5)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        argv = [program(), "dev", "--json", "--http", "127.0.0.1:0", "--amqp", "127.0.0.1:0", folder]
        daemon = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            ready = json.loads(daemon.stdout.readline())
            port = re.search(r":(\d+)", str(ready["amqp"]).split("//")[-1]).group(1)
            endpoint = f"Endpoint=sb://127.0.0.1:{port};SharedAccessKeyName=k;SharedAccessKey=k;UseDevelopmentEmulator=true;"
            with Client(ready["http"]) as client, ServiceBusClient.from_connection_string(endpoint) as azure:
                compare(client, azure, given)
        finally:
            daemon.terminate()
            daemon.wait()


def compare(client, azure, given):
    rounds = []
    for number in range(given.rounds):
        name = f"bench-{number}"
        client.queue(name).create(order="none")
        row = {
            "send, seriatim": timed(ours_sends, client, name, given.messages),
            "send, azure-servicebus": timed(azures_sends, azure, name, given.messages),
            # Each receives half of what both have sent.
            "receive and complete, seriatim": timed(ours_receives, client, name, given.messages),
            "receive and complete, azure-servicebus": timed(azures_receives, azure, name, given.messages),
        }
        rounds.append(row)
        print(json.dumps({name: round(given.messages / seconds) for name, seconds in row.items()}), flush=True)
    for verb in ("send", "receive and complete"):
        ratios = [row[f"{verb}, azure-servicebus"] / row[f"{verb}, seriatim"] for row in rounds]
        print(f"{verb}: {statistics.median(ratios):.2f} times as quick as azure-servicebus")


if __name__ == "__main__":
    main()
