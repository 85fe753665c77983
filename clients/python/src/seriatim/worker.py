"""A worker that receives over HTTP: it may run on any machine that reaches the daemon."""

from __future__ import annotations

import logging
import queue
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, List, Optional, Set

from seriatim import requests
from seriatim.app import App, Loop
from seriatim.client import Client, Delivery
from seriatim.locks import RENEW_FOR, Held, Locks
from seriatim.message import Duration, seconds
from seriatim.outcome import Retry, described
from seriatim.requests import Request
from seriatim.settling import ending, release, settle

logger = logging.getLogger("seriatim")

#: How many messages of each queue are handled at once if nothing is said.
CONCURRENCY = 32
#: How long one request waits for messages: so long a stop may take.
WAIT = 2.0
#: How long nothing is asked after a failure.
PAUSE = 0.5
#: Most completions of one request.
COMPLETIONS_MAX = 256


class Worker:
    """Receives for the handlers of an app, renews the locks of what they have, and settles.

    So many messages of each queue as ``concurrency`` says are handled at once. A lock is renewed for ``renew_for``; a handler that
    takes longer loses it.
    """

    def __init__(self, app: App, client: Client, concurrency: int, renew_for: Duration = RENEW_FOR) -> None:
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        self._app, self._client = app, client
        self._concurrency = concurrency
        self._loop = Loop()
        self._stop = threading.Event()
        self._done = threading.Event()
        self._locks = Locks(seconds(renew_for))

    def stop(self) -> None:
        """Receives nothing more; :meth:`run` returns when what was begun has ended."""
        self._stop.set()

    def run(self) -> None:
        """Runs until :meth:`stop`, SIGTERM or SIGINT."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self.stop())
        queues: Set[str] = {handler.queue for handler in self._app.handlers}
        lines = [Line(self, name) for name in sorted(queues)]
        renewer = threading.Thread(target=self._locks.run, args=(self._done,), name="seriatim-renewals", daemon=True)
        renewer.start()
        threads = [threading.Thread(target=line.run, name=f"seriatim-{line.name}", daemon=True) for line in lines]
        for thread in threads:
            thread.start()
        try:
            # A join without a time limit would keep the main thread from noticing a signal on some systems.
            while any(thread.is_alive() for thread in threads):
                for thread in threads:
                    thread.join(0.2)
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()
            self._done.set()
            renewer.join()


class Line:
    """What one queue needs: a receiver, threads that handle, and one that completes what was handled, many at once."""

    def __init__(self, worker: Worker, name: str) -> None:
        self.name = name
        self._worker = worker
        self._queue = worker._client.queue(name)
        self._free = threading.Semaphore(worker._concurrency)
        self._completed: "queue.SimpleQueue[Optional[Held]]" = queue.SimpleQueue()

    def run(self) -> None:
        """Runs until the worker stops, and what was begun has ended."""
        completer = threading.Thread(target=self._complete, name=f"seriatim-{self.name}-completions", daemon=True)
        completer.start()
        try:
            with ThreadPoolExecutor(self._worker._concurrency, thread_name_prefix=f"seriatim-{self.name}") as pool:
                while not self._worker._stop.is_set():
                    if self._free.acquire(timeout=0.2):
                        self._receive(pool, 1 + self._take_free())
        finally:
            self._completed.put(None)
            completer.join()

    def _take_free(self) -> int:
        taken = 0
        while taken + 1 < self._worker._concurrency and self._free.acquire(blocking=False):
            taken += 1
        return taken

    def _receive(self, pool: ThreadPoolExecutor, places: int) -> None:
        deliveries: List[Delivery] = []
        asked = self._worker._locks.clock()
        try:
            deliveries = self._queue.receive(max=places, wait=WAIT, state=True, raw=self._worker._app.raw)
        except Exception as error:
            # Whatever it is: the queue is received from again.
            logger.warning("cannot receive from %s: %s", self.name, described(error))
            self._worker._stop.wait(PAUSE)
        if places > len(deliveries):
            self._free.release(places - len(deliveries))
        received = [self._worker._locks.hold(delivery, asked) for delivery in deliveries]
        if not all([self._submit(pool, held) for held in received]):
            self._worker._stop.wait(PAUSE)

    def _submit(self, pool: ThreadPoolExecutor, held: Held) -> bool:
        """Lets a thread handle it; when none can be started, it is given back."""
        # A pool keeps what it has no thread for, and may begin it later: whoever gets this lock has the delivery.
        claim = threading.Lock()

        def handle() -> None:
            if claim.acquire(blocking=False):
                self._handle(held)

        try:
            pool.submit(handle)
        except RuntimeError as error:
            if claim.acquire(blocking=False):
                logger.warning("cannot handle %r yet: %s; it is given back", held.delivery, described(error))
                self._settle(held, release(held))
            return False
        return True

    def _handle(self, held: Held) -> None:
        try:
            settlement = self._settlement(held)
        except BaseException as error:
            # Whatever a handler has said: its message does not stay locked, and its place is free again.
            logger.exception("cannot settle %r as its handler said", held.delivery)
            settlement = ending(held, Retry(described(error)))
        if settlement is None:
            self._completed.put(held)
        else:
            self._settle(held, settlement)

    def _settlement(self, held: Held) -> Optional[Request[Any]]:
        """Calls the handler: the request that settles its message; ``None`` to complete it, along with others."""
        delivery = held.delivery
        if self._worker._stop.is_set():
            return release(held)
        handler = self._worker._app.find(delivery)
        if handler is None:
            return ending(held, Retry(f"the worker has no handler for the subject {delivery.subject!r}"))
        outcome = handler.handle(delivery, held.context, self._worker._loop.run)
        if outcome is not None:
            return ending(held, outcome)
        completion = held.context.completion()
        return requests.settle(delivery.queue, delivery.delivery, "complete", completion) if completion else None

    def _settle(self, held: Held, settlement: Request[Any]) -> None:
        try:
            settle(held, settlement, self._worker._stop)
        finally:
            self._ended(held)

    def _ended(self, held: Held) -> None:
        self._worker._locks.let_go(held)
        self._free.release()

    def _complete(self) -> None:
        """Completes what waits for it, all that has come together with one request."""
        while True:
            first = self._completed.get()
            if first is None:
                return
            together, ends = [first], False
            while len(together) < COMPLETIONS_MAX and not self._completed.empty():
                held = self._completed.get()
                if held is None:
                    ends = True
                    break
                together.append(held)
            self._complete_all(together)
            if ends:
                return

    def _complete_all(self, together: List[Held]) -> None:
        try:
            answer = self._queue.complete(held.delivery for held in together)
            for held, result in zip(together, answer["results"]):
                if "error" in result:
                    detail = result["error"].get("detail")
                    logger.warning("cannot complete %r: %s; it comes again", held.delivery, detail)
        except Exception as error:
            logger.warning("cannot complete %s messages of %s: %s; they come again", len(together), self.name, described(error))
        for held in together:
            self._ended(held)
