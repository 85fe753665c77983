#!/usr/bin/env python3
"""Measures the page: how long the server makes a screen, how many bytes it has, and when a browser first paints it.

Usage: python3 benches/page/run.py [BINARY] [--rounds N] [--json]

A store of 100,000 workflows, of which the last 1,000 wait for a predecessor that never comes, and 1,000 dead letters. Each
screen is asked for N times on a connection of its own, then opened N times in Chromium, if there is one (chromedriver); the
medians are printed. BINARY is target/release/seriatim by default.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
WORKFLOWS, BLOCKED, DEAD = 100_000, 1_000, 1_000
SCREENS = {
    "blocked": "blocked",
    "overview": "overview",
    "workflows": "workflows?queue=orders",
    "found by prefix": "workflows?queue=orders&prefix=order-0999",
    "workflow": "workflow?queue=orders&id=order-099500",
    "dead letters": "dead-letters",
    "messages by property": "messages?queue=orders&by=subject&value=nothing",
}
# When the browser has painted something of the page, in milliseconds since it was asked for.
PAINTED = """const done = arguments[0];
const look = () => { const [paint] = performance.getEntriesByName('first-contentful-paint');
  paint ? done(paint.startTime) : requestAnimationFrame(look); }; look();"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", nargs="?", default=str(HERE.parents[1] / "target/release/seriatim"))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "workflows").mkdir()
        command = [arguments.binary, "run", f"{folder}/workflows", "--data", f"{folder}/data", "--http", "127.0.0.1:0", "--json"]
        daemon = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            address = json.loads(daemon.stdout.readline())["http"]
            fill(f"{address}/v1/queues")
            measured = {name: served(f"{address}/ui/{place}", arguments.rounds) for name, place in SCREENS.items()}
            if shutil.which("chromedriver"):
                paint(address, measured, arguments.rounds)
        finally:
            daemon.terminate()
            daemon.wait()
    if arguments.json:
        print(json.dumps(measured))
        return
    print("| screen | served | first paint | size |\n|---|---|---|---|")
    for name, found in measured.items():
        first = f"{found['paint_ms']:.0f} ms" if "paint_ms" in found else "not measured"
        print(f"| {name} | {found['served_ms']:.0f} ms | {first} | {found['bytes'] / 1000:.0f} kB |")


def ask(url, body=None, method=None, kind="application/json"):
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method, headers={"Content-Type": kind})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return answer.read()


def fill(queues):
    ask(f"{queues}/orders", {"order": "position"}, "PUT")
    ask(f"{queues}/letters", {"order": "arrival"}, "PUT")
    for begin in range(0, WORKFLOWS, 20_000):
        position = lambda number: 2 if number >= WORKFLOWS - BLOCKED else 1
        lines = ({"workflow_id": f"order-{number:06}", "position": position(number), "body": {"order": number}}
                 for number in range(begin, begin + 20_000))
        send(f"{queues}/orders", lines)
    send(f"{queues}/letters", ({"workflow_id": f"w{number}", "body": {}} for number in range(DEAD)))
    left = DEAD
    while left:
        received = json.loads(ask(f"{queues}/letters/receive", {"max": 100}))["deliveries"]
        for delivery in received:
            refused = {"reason": "invalid", "description": f"amount {left} exceeds the limit"}
            ask(f"{queues}/letters/deliveries/{delivery['delivery']}/dead_letter", refused)
        left -= len(received)


def send(queue, lines):
    text = "\n".join(map(json.dumps, lines)).encode()
    ask(f"{queue}/messages", text, "POST", "application/x-ndjson")


def served(url, rounds):
    """The median of how long the server takes, with the connection, and the bytes of the screen."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        size = len(ask(url))
        times.append((time.perf_counter() - began) * 1_000)
    return {"served_ms": statistics.median(times), "bytes": size}


def paint(address, measured, rounds):
    """Adds the median of the first paint in Chromium."""
    driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    port = next(line.rsplit(" ", 1)[1].strip(" .\n") for line in driver.stdout if "started successfully" in line)
    arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": arguments}}}}
    session = f"http://127.0.0.1:{port}/session"
    session += "/" + json.loads(ask(session, wanted))["value"]["sessionId"]
    try:
        for name, place in SCREENS.items():
            times = []
            for _ in range(rounds):
                ask(f"{session}/url", {"url": f"{address}/ui/{place}"})
                times.append(json.loads(ask(f"{session}/execute/async", {"script": PAINTED, "args": []}))["value"])
            measured[name]["paint_ms"] = statistics.median(times)
    finally:
        ask(session, method="DELETE")
        driver.terminate()
        driver.wait()


main()
