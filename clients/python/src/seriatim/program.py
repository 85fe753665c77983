"""A program that a daemon has started and keeps running: a line of JSON for each message, and one for each answer."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, Optional

from seriatim.app import App, Context, Loop
from seriatim.message import Received
from seriatim.outcome import Retry, described
from seriatim.reading import load

logger = logging.getLogger("seriatim")

#: Most messages that a daemon hands one process at once (``in_flight_max``).
IN_FLIGHT_MAX = 16_384


class Program:
    """Serves the daemon on standard input and output, until its input ends.

    Without ``concurrency`` there is a thread for each message that the daemon hands it: what waited here would wait on the clock of
    its attempt.
    """

    def __init__(self, app: App, concurrency: Optional[int] = None) -> None:
        self._app = app
        self._loop = Loop()
        threads = IN_FLIGHT_MAX if concurrency is None else concurrency
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="seriatim")
        self._lock = threading.Lock()
        self._output = -1

    def run(self) -> None:
        """Serves until the input ends. What handlers print goes to standard error, and so into the daemon's log."""
        self._output = os.dup(1)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        with self._pool:
            for line in sys.stdin.buffer:
                self._submit(load(line))

    def _submit(self, request: Dict[str, Any]) -> None:
        try:
            self._pool.submit(self._serve, request)
        except RuntimeError:
            # There is no room for one more thread. It waits for one of those that there are.
            if not self._pool._threads:
                raise

    def _serve(self, request: Dict[str, Any]) -> None:
        try:
            line = _line(request, self._answer(Received(request["message"])))
        except BaseException as error:
            # The daemon waits for an answer, also where the outcome cannot be written.
            message = request["message"]
            logger.exception("cannot answer as a handler said: %s#%s", message["queue"], message["sequence_number"])
            line = _line(request, Retry(described(error)).answer())
        with self._lock:
            while line:
                line = line[os.write(self._output, line) :]

    def _answer(self, message: Received) -> Dict[str, Any]:
        handler = self._app.find(message)
        if handler is None:
            return Retry(f"this program has no handler for queue {message.queue}").answer()
        context = Context(message)
        outcome = handler.handle(message, context, self._loop.run)
        return {"outcome": "complete", **context.completion()} if outcome is None else outcome.answer()


def _line(request: Dict[str, Any], answer: Dict[str, Any]) -> bytes:
    return json.dumps({"id": request["id"], **answer}, separators=(",", ":"), allow_nan=False).encode() + b"\n"
