#!/usr/bin/env python3
"""Measures the daemon over HTTP, and the engine embedded, in turns.

Usage: python3 benches/daemon/run.py [BINARY] [--rounds N] [--json]

Each round sends 10,000 workflows x 20 messages of 256 bytes over four connections: in NDJSON batches of 1,000 to a queue
nobody handles, and in batches of 256 to one with a persistent handler (benches/daemon/echo.py in one process, which may hold
4,096 messages). Beside it the engine embedded has the same load (`seriatim bench wide`: as many workflows, messages and
bytes, as many senders with batches as long, by position too) and its quickest one (`seriatim bench live`: 1,000 workflows,
in order of arrival). Prints the medians.
BINARY is target/release/seriatim by default.
"""
import argparse
import http.client
import json
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
WORKFLOWS, LENGTH, CONNECTIONS = 10_000, 20, 4
# The embedded load is sent in batches of 256.
BATCH_ACCEPTED, BATCH_HANDLED = 1_000, 256
TOTAL = WORKFLOWS * LENGTH
# With what is around it, 256 bytes.
TEXT = "x" * 234


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", nargs="?", default=str(HERE.parents[1] / "target/release/seriatim"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rounds = []
    for number in range(arguments.rounds):
        rounds.append({
            "accepted": over_http(arguments.binary, handled=False),
            "end_to_end": over_http(arguments.binary, handled=True),
            "embedded": embedded(arguments.binary, "wide"),
            "embedded_live": embedded(arguments.binary, "live"),
        })
        if not arguments.json:
            print(f"round {number + 1}: " + ", ".join(f"{name} {rate:,.0f}/s" for name, rate in rounds[-1].items()))
    median = {name: statistics.median(found[name] for found in rounds) for name in rounds[0]}
    for name in ("embedded", "embedded_live"):
        shares = (found["end_to_end"] / found[name] for found in rounds)
        median[f"end_to_end_of_{name}"] = round(statistics.median(shares), 3)
    print(json.dumps(median) if arguments.json else f"medians: {median}")


def over_http(binary, handled):
    """Messages a second from the first request to the last answer, or to the last completion."""
    with tempfile.TemporaryDirectory() as folder:
        definitions = pathlib.Path(folder) / "workflows"
        definitions.mkdir()
        handler = f'[[handler]]\npersistent = ["python3", "{HERE / "echo.py"}"]\nin_flight_max = 4096\n' if handled else ""
        (definitions / "load.toml").write_text(f'order = "position"\n[delivery]\nconcurrency = 4096\n{handler}')
        command = [binary, "run", definitions, "--data", f"{folder}/data", "--http", "127.0.0.1:0", "--json"]
        daemon = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            address = json.loads(daemon.stdout.readline())["http"].removeprefix("http://")
            # Before the clock runs: what is measured is the daemon, and not how quickly Python puts texts together.
            shares = [bodies(share, BATCH_HANDLED if handled else BATCH_ACCEPTED) for share in range(CONNECTIONS)]
            began = time.monotonic()
            send_all(address, shares)
            while handled and completed(address) < TOTAL:
                time.sleep(0.02)
            return TOTAL / (time.monotonic() - began)
        finally:
            daemon.terminate()
            daemon.wait()


def send_all(address, shares):
    senders = [threading.Thread(target=send, args=(address, share)) for share in shares]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()


def bodies(share, batch):
    """The requests of one connection, in order."""
    return [
        "\n".join(
            f'{{"workflow_id":"w{workflow}","position":{position},"body":{{"id":{workflow},"text":"{TEXT}"}}}}'
            for workflow in range(first, min(first + batch, WORKFLOWS))
        ).encode()
        for position in range(1, LENGTH + 1)
        for first in range(share * batch, WORKFLOWS, CONNECTIONS * batch)
    ]


def send(address, share):
    connection = http.client.HTTPConnection(address)
    headers = {"content-type": "application/x-ndjson"}
    for body in share:
        connection.request("POST", "/v1/queues/load/messages", body, headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200 or b"error" in text:
            raise SystemExit(f"{answer.status}: {text[:300]}")


def completed(address):
    connection = http.client.HTTPConnection(address)
    connection.request("GET", "/v1/queues/load")
    return json.loads(connection.getresponse().read())["counts"]["completed"]


def embedded(binary, workload):
    command = [binary, "bench", workload, "--messages", str(TOTAL), "--json"]
    line = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    return json.loads(line)["messages_per_second"]


if __name__ == "__main__":
    main()
