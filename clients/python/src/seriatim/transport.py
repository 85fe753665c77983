"""HTTP with the standard library: connections that are kept, for any number of threads."""

from __future__ import annotations

import http.client
import os
import selectors
import socket
import threading
import time
import weakref
from typing import Any, List, Optional, Tuple, TypeVar

from seriatim.errors import Unavailable, Unreachable
from seriatim.requests import Address, Request, decode

T = TypeVar("T")

#: The daemon closes a connection that has been idle for 75 s; one that may be about to be closed is not used again.
IDLE_MAX = 60.0
#: Connections that are kept when nobody uses them.
KEPT_MAX = 32
#: Between two tries of a request that may be asked again, in seconds.
PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0)

#: The least that one try may take: a timeout of nothing would mean something else to a socket.
TIMEOUT_MIN = 0.01

#: ``select`` would refuse a socket whose number is 1,024 or higher, where there is anything else.
_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)


#: Those of this process.
_TRANSPORTS: "weakref.WeakSet[Transport]" = weakref.WeakSet()


class Transport:
    """Asks one daemon, in any number of threads."""

    def __init__(self, address: Address, timeout: float, retry_for: float) -> None:
        self.address = address
        self.timeout = timeout
        self.retry_for = retry_for
        self._idle: List[Tuple[float, http.client.HTTPConnection]] = []
        self._lock = threading.Lock()
        _TRANSPORTS.add(self)

    def begin_anew(self) -> None:
        """In a process that was forked: the connections are those of its parent, and a thread that is not here may have the lock."""
        self._lock = threading.Lock()
        self.close()

    def call(self, request: Request[T], limit: Optional[float] = None) -> T:
        """Asks, and asks again for a while what may be asked again when nobody answers: with a limit, so many seconds in all."""
        started, tries = time.monotonic(), 0
        ends = started + (self.retry_for if limit is None else min(self.retry_for, limit))
        while True:
            timeout = self.timeout + request.wait
            if limit is not None:
                timeout = max(min(timeout, started + limit - time.monotonic()), TIMEOUT_MIN)
            try:
                return self._once(request, timeout)
            except (Unreachable, Unavailable):
                pause = PAUSES[min(tries, len(PAUSES) - 1)]
                if not request.repeatable or time.monotonic() + pause > ends:
                    raise
                time.sleep(pause)
                tries += 1

    def _once(self, request: Request[T], timeout: float) -> T:
        ends = time.monotonic() + timeout
        connection = self._take()
        is_kept = connection.sock is not None
        try:
            try:
                status, body = self._exchange(connection, request, timeout)
            except (OSError, http.client.HTTPException) as error:
                if not is_kept or isinstance(error, socket.timeout):
                    raise
                # Who has closed this one, as a daemon does that begins anew, has closed the others, too.
                self.close()
                if not request.repeatable:
                    raise
                status, body = self._exchange(self._connect(), request, max(ends - time.monotonic(), TIMEOUT_MIN))
        except (OSError, http.client.HTTPException) as error:
            raise self.address.unreachable(error) from error
        return decode(request, status, body)

    def _exchange(self, connection: http.client.HTTPConnection, request: Request[Any], timeout: float) -> Tuple[int, bytes]:
        try:
            connection.timeout = timeout
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            path = self.address.prefix + request.path
            connection.request(request.method, path, request.body, self.address.headers(request))
            response = connection.getresponse()
            body = response.read()
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._put(connection)
        return response.status, body

    def _take(self) -> http.client.HTTPConnection:
        with self._lock:
            while self._idle:
                since, connection = self._idle.pop()
                if time.monotonic() - since < IDLE_MAX and not _has_ended(connection):
                    return connection
                connection.close()
        return self._connect()

    def _connect(self) -> http.client.HTTPConnection:
        if self.address.tls is not None:
            return http.client.HTTPSConnection(self.address.host, self.address.port, context=self.address.tls)
        return http.client.HTTPConnection(self.address.host, self.address.port)

    def _put(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < KEPT_MAX:
                self._idle.append((time.monotonic(), connection))
                return
        connection.close()

    def close(self) -> None:
        """Closes the connections that are kept; the next request opens a new one."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def __enter__(self) -> "Transport":
        return self

    def __exit__(self, *_: Optional[Any]) -> None:
        self.close()


def _has_ended(connection: http.client.HTTPConnection) -> bool:
    """Whether its peer has closed it: nothing else comes while nothing is asked."""
    with _Selector() as selector:
        selector.register(connection.sock, selectors.EVENT_READ)
        return bool(selector.select(0))


def _begin_anew() -> None:
    for transport in list(_TRANSPORTS):
        transport.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
