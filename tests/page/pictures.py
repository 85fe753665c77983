#!/usr/bin/env python3
"""Makes a picture of every screen of the page, for docs/page.md.

    cargo build && python3 tests/page/pictures.py

It starts target/debug/seriatim on a temporary folder, lets workflows get stuck in every way, and takes the pictures with
Chromium, driven by chromedriver. It needs both, and nothing else.
"""

import base64
import json
import pathlib
import subprocess
import tempfile
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "page"
DEFINITION = """order = "arrival"
history = "7d"
[[handler]]
exec = ["true"]
[[schedule]]
name = "settle-the-day"
cron = "0 2 * * *"
workflow_id = "settlement"
"""
ERRORS = ["connection refused (os error 111)", "HTTP 422: currency XYZ is unknown", "timeout after 30 s"]
SCREENS = [
    ("blocked", "blocked", 1200, "light"),
    ("workflow", "workflow?queue=charges&id=order-4711", 1200, "light"),
    ("workflow-phone", "workflow?queue=charges&id=order-4711", 390, "dark"),
    ("message", "message?queue=charges&number={failed}", 1200, "light"),
    ("review", "review?do=skip&queue=charges&id=order-4711&back=blocked", 1200, "light"),
    ("overview", "overview", 1200, "dark"),
    ("workflows", "workflows?queue=charges", 1200, "light"),
    ("dead-letters", "dead-letters", 1200, "light"),
    ("edit", "edit?queue=charges&number={dead}", 1200, "light"),
    ("schedules", "schedules", 1200, "light"),
    ("definitions", "definitions", 1200, "light"),
    ("audit", "audit", 1200, "light"),
    ("tail", "tail", 1200, "light"),
]


def ask(method, url, body=None, headers=None):
    """Asks for JSON; a body that is no bytes is sent as JSON."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method)
    for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
        request.add_header(name, value)
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read()
    return json.loads(text) if text else None


class Store:
    """The queue that the pictures show."""

    def __init__(self, address):
        self.url = f"{address}/v1/queues/charges"
        ask("PUT", self.url, {"order": "position", "history": "7d"})

    def send(self, workflow, position, body):
        headers = {"Seriatim-Workflow-Id": urllib.parse.quote(workflow), "Seriatim-Position": str(position)}
        return ask("POST", f"{self.url}/messages", body, headers)["sequence_number"]

    def settle(self, how, body):
        received = ask("POST", f"{self.url}/receive", {"max": 1, "wait": "10s"})
        delivery = received["deliveries"][0]["delivery"]
        ask("POST", f"{self.url}/deliveries/{delivery}/{how}", body)

    def operate(self, verb, workflow, reason):
        query = urllib.parse.urlencode({"id": workflow})
        ask("POST", f"{self.url}/workflow/{verb}?{query}", {"reason": reason})

    def fill(self):
        """Lets workflows get stuck; answers the number of a message that has failed, and that of a dead letter."""
        numbers = {at: self.send("order-4711", at, {"order": 4711, "cents": 18446744073709551616, "step": at})
                   for at in [*range(1, 19), 20]}
        for _ in range(15):
            self.settle("complete", {})
        for wait in ["0s", "0s", "19m"]:
            self.settle("abandon", {"retry_after": wait, "reason": "bank.example answered 503: closed for maintenance"})
        for number in range(1, 7):
            workflow = f"order-48{number:02}"
            for at in range(1, 3 + number % 3):
                self.send(workflow, at, {"order": workflow})
            self.settle("abandon", {"retry_after": f"{number * 7}m", "reason": ERRORS[number % 3]})
        self.send("order-5000", 3, {})
        self.send("order-5001", 1, {})
        self.operate("hold", "order-5001", "the customer disputes the invoice")
        for number in range(9):
            dead = self.send(f"order-60{number:02}", 1, {"order": f"60{number:02}", "card": 1000 + number, "cents": number * 1700})
            reason = "invalid" if number % 3 else "expired_card"
            text = f"amount {number * 17} exceeds the limit" if number % 3 else f"card {1000 + number} has expired"
            self.settle("dead_letter", {"reason": reason, "description": text})
        return numbers[16], dead


class Chromium:
    """A browser without a window."""

    def __init__(self):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        port = next(line.rsplit(" ", 1)[1].strip(" .\n") for line in self.driver.stdout if "started successfully" in line)
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"]
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": arguments}}}}
        self.url = f"http://127.0.0.1:{port}/session"
        self.url += "/" + ask("POST", self.url, wanted)["value"]["sessionId"]

    def devtools(self, command, **parameters):
        return ask("POST", f"{self.url}/goog/cdp/execute", {"cmd": command, "params": parameters})["value"]

    def picture(self, place, width, scheme):
        self.size(width, 800)
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        ask("POST", f"{self.url}/url", {"url": place})
        script = {"script": "return document.documentElement.scrollHeight", "args": []}
        height = ask("POST", f"{self.url}/execute/sync", script)["value"]
        self.size(width, min(height, 1300))
        return base64.b64decode(self.devtools("Page.captureScreenshot", format="png")["data"])

    def size(self, width, height):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def end(self):
        ask("DELETE", self.url)
        self.driver.terminate()


def main():
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        definitions = pathlib.Path(folder) / "workflows"
        definitions.mkdir()
        (definitions / "settlements.toml").write_text(DEFINITION)
        command = [ROOT / "target/debug/seriatim", "run", definitions, "--data", f"{folder}/data",
                   "--http", "127.0.0.1:0", "--json", "--environment", "production:red"]
        daemon = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        chromium = Chromium()
        try:
            address = json.loads(daemon.stdout.readline())["http"]
            failed, dead = Store(address).fill()
            for name, place, width, scheme in SCREENS:
                picture = chromium.picture(f"{address}/ui/{place.format(failed=failed, dead=dead)}", width, scheme)
                (PICTURES / f"{name}.png").write_bytes(picture)
                print(f"docs/page/{name}.png")
        finally:
            chromium.end()
            daemon.terminate()
            daemon.wait()


main()
