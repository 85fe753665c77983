"""What every scenario stands on: where the daemon is, queues of its own, and how a promise is told."""
import asyncio
import inspect
import itertools
import json
import os
import sys
import time
import traceback
import urllib.request

SERVICE_BUS = (
    f"Endpoint=sb://{os.environ.get('SERIATIM_AMQP')};SharedAccessKeyName=RootManageSharedAccessKey;"
    "SharedAccessKey=c2VjcmV0;UseDevelopmentEmulator=true"
)

# The development account and its key are known to everybody; every emulator has them.
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
STORAGE = (
    f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};"
    f"QueueEndpoint=http://{os.environ.get('SERIATIM_STORAGE_QUEUE')}/{ACCOUNT};"
)

promises = []
numbers = itertools.count(1)


def promise(function):
    """Declares a function, or a coroutine, whose name is a promise; it raises when that is broken."""
    promises.append(function)
    return function


def queue(name=None, **options):
    """Makes a queue that nobody else uses; as Service Bus does, it gives up a message after ten deliveries."""
    name = name or f"queue-{next(numbers)}"
    options.setdefault("retry", {"then": "skip"})
    with ask_of_queue(name, "PUT", json.dumps(options).encode()) as answer:
        assert answer.status == 201, answer.status
    return name


def ask_of_queue(name, method, body=None):
    """Asks the daemon's own API for something of a queue."""
    address = f"http://{os.environ['SERIATIM_HTTP']}/v1/queues/{name}"
    headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ.get('SERIATIM_SECRET')}"}
    return urllib.request.urlopen(urllib.request.Request(address, body, headers, method=method))


def wait_until_empty(name, seconds=90):
    """Returns when nothing is stored in the queue any more."""
    until = time.monotonic() + seconds
    while True:
        with ask_of_queue(name, "GET") as answer:
            stored = json.load(answer)["counts"]["stored"]
        if stored == 0:
            return
        assert time.monotonic() < until, f"{stored} messages are still in {name}"
        time.sleep(0.1)


def short(lock="1s"):
    """Options of a queue with a short lock."""
    return {"delivery": {"lock": lock}}


def receive_all(client, name, max_wait_time, **options):
    """Receives and completes messages until none comes any more."""
    with client.get_queue_receiver(name, **options) as receiver:
        return complete_all(receiver, max_wait_time)


def complete_all(receiver, max_wait_time, at_least=0, together=10):
    """Completes what is received until none comes any more; waits long for what must come, because on a busy machine little
    does in a second."""
    received = []
    while messages := receiver.receive_messages(together, max_wait_time=20 if len(received) < at_least else max_wait_time):
        received += messages
        for message in messages:
            receiver.complete_message(message)
    return received


def kill():
    """Kills the daemon with SIGKILL, and returns when it runs again."""
    print(json.dumps({"ask": "kill"}), flush=True)
    assert sys.stdin.readline() == "done\n"


def play():
    """Keeps every promise of the script, or only those that are named, and prints how it went."""
    for function in promises:
        if sys.argv[1:] and function.__name__ not in sys.argv[1:]:
            continue
        told = {"promise": function.__name__, "outcome": "kept"}
        started = time.monotonic()
        try:
            done = function()
            if inspect.iscoroutine(done):
                asyncio.run(done)
        except Exception:
            told.update(outcome="broken", detail=traceback.format_exc())
        told["seconds"] = round(time.monotonic() - started, 2)
        print(json.dumps(told), flush=True)
