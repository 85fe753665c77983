"""Handlers: functions that a queue's messages are given to, one at a time for each workflow."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import threading
from typing import Any, Awaitable, Callable, Dict, List, Mapping, Optional, Tuple, Type, Union

from seriatim.message import Body, Duration, Message, Received
from seriatim.outcome import Outcome, Retry, described
from seriatim.requests import KEEP, completion

logger = logging.getLogger("seriatim")

#: What a handler may return: nothing when the message is done, or an outcome.
Returned = Optional[Outcome]
Function = Callable[[Received, "Context"], Union[Returned, Awaitable[Returned]]]


class Context:
    """What a handler may do along with completing its message: one transaction, or nothing of it."""

    def __init__(self, message: Received) -> None:
        self._state: Any = KEEP
        self._known = message.state
        self._sends: List[Any] = []
        #: Set when the lock is lost: somebody else may have the message, so what the handler does has no effect here. A program that
        #: a daemon has started is not told.
        self.lost = threading.Event()
        #: Which attempt this is, from 1.
        self.attempt = message.delivery_count

    @property
    def state(self) -> Any:
        """The workflow's state. Set it to change it with the completion; ``None`` clears it."""
        return self._known if self._state is KEEP else self._state

    @state.setter
    def state(self, value: Any) -> None:
        self._state = value

    def send(self, queue: str, body: Union[Body, Message] = b"", **fields: Any) -> None:
        """Sends a message with the completion. Fields are those of :class:`seriatim.Message`."""
        self._sends.append((queue, body if isinstance(body, Message) else Message(body, **fields)))

    def completion(self) -> Dict[str, Any]:
        """What the completion says."""
        return completion(self._state, self._sends)


class Handler:
    """A function for the messages of a queue, and what its errors mean."""

    def __init__(
        self, queue: str, function: Function, subject: Optional[str], retry: Mapping[Type[BaseException], Outcome]
    ) -> None:
        self.queue, self.function, self.subject, self.retry = queue, function, subject, retry

    def handle(self, message: Received, context: Context, run: Callable[[Any], Any]) -> Optional[Outcome]:
        """Calls the function; ``None`` when the message is done. ``run`` runs a coroutine to its end.

        Also what is no :class:`Exception` is a failed attempt, as ``sys.exit()``: it ends no program from a thread, and the
        message would stay locked.
        """
        try:
            returned: Any = self.function(message, context)
            if inspect.isawaitable(returned):
                returned = run(returned)
        except Outcome as outcome:
            return outcome
        except BaseException as error:
            return self._failed(message, error)
        if returned is None or isinstance(returned, Outcome):
            return returned
        return Retry(f"the handler returned {type(returned).__name__}; return None, Retry, Defer or DeadLetter")

    def _failed(self, message: Received, error: BaseException) -> Outcome:
        for kind in type(error).__mro__:
            outcome = self.retry.get(kind)
            if outcome is not None:
                return outcome.because(error) if isinstance(outcome, Retry) else outcome
        logger.exception("a handler failed: %r", message)
        return Retry(described(error))


class Loop:
    """An event loop in a thread of its own, for handlers that are coroutines."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: Optional[asyncio.AbstractEventLoop] = None

    def run(self, coroutine: Any) -> Any:
        """Runs a coroutine to its end, from any thread."""
        with self._lock:
            if self._loop is None:
                self._loop = _running_loop()
        result, leaves = asyncio.run_coroutine_threadsafe(_awaited(coroutine), self._loop).result()
        if leaves is not None:
            raise leaves
        return result


def _running_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    try:
        threading.Thread(target=loop.run_forever, name="seriatim-loop", daemon=True).start()
    except BaseException:
        # Nobody would run what is given to it.
        loop.close()
        raise
    return loop


async def _awaited(awaitable: Any) -> Tuple[Any, Optional[BaseException]]:
    try:
        return await awaitable, None
    except (SystemExit, KeyboardInterrupt) as error:
        # Raised here it would end the loop, and no other coroutine would end.
        return None, error


class App:
    """Handlers of a program.

    >>> app = App()
    >>> @app.handler("orders")
    ... def handle(message, context):
    ...     context.state = message.json()

    ``app.run()`` serves the daemon that has started the program (``persistent`` in a definition), or, started by anybody else,
    receives over HTTP. ``raw`` says that there, bodies of JSON are received byte for byte: see :attr:`Received.body`. A daemon
    that has started the program always gives it JSON values.
    """

    def __init__(self, *, raw: bool = False) -> None:
        self.handlers: List[Handler] = []
        self.raw = raw

    def handler(
        self, queue: str, *, subject: Optional[str] = None, retry: Optional[Mapping[Type[BaseException], Outcome]] = None
    ) -> Callable[[Function], Function]:
        """Registers a function, plain or ``async``, for the messages of a queue (with one subject, if it is given).

        ``retry`` says what an exception means: ``{TimeoutError: Retry(after=30), ValueError: DeadLetter("bad")}``. Any other
        exception is a failed attempt, which is tried again as the queue says.
        """

        def register(function: Function) -> Function:
            if any(known.queue == queue and known.subject == subject for known in self.handlers):
                raise ValueError(f"queue {queue} has a handler for this subject already")
            self.handlers.append(Handler(queue, function, subject, retry or {}))
            return function

        return register

    def find(self, message: Received) -> Optional[Handler]:
        """The handler of a message: that of its subject, else that of its queue."""
        of_queue = [handler for handler in self.handlers if handler.queue == message.queue]
        exact = [handler for handler in of_queue if handler.subject is not None and handler.subject == message.subject]
        rest = [handler for handler in of_queue if handler.subject is None]
        return next(iter(exact + rest), None)

    def run(
        self,
        url: Optional[str] = None,
        key: Optional[str] = None,
        *,
        concurrency: Optional[int] = None,
        renew_for: Duration = 300,
    ) -> None:
        """Runs until the daemon ends the program, or until SIGTERM or SIGINT: then what was begun is finished, and what was
        not is given back uncounted. ``concurrency`` is how many messages of each queue are handled at once: 32 if it is not given,
        and in a program that a daemon has started as many as that hands it. ``renew_for`` is how long the lock of one is renewed: a
        handler that takes longer loses it. A daemon that has started the program has its own ``renew_for``, in its definition."""
        if "SERIATIM_CHILD" in os.environ and url is None:
            from seriatim.program import Program

            if "SERIATIM_SEQUENCE_NUMBER" in os.environ:
                raise SystemExit("an App runs on: write persistent = [...] in the definition, not exec = [...]")
            Program(self, concurrency).run()
        else:
            from seriatim.client import Client
            from seriatim.worker import CONCURRENCY, Worker

            with Client(url, key) as client:
                Worker(self, client, CONCURRENCY if concurrency is None else concurrency, renew_for).run()
