"""Locks on what a worker has in hand: renewed while a handler runs, and known to be lost in time.

Time is counted by a monotonic clock, and from before a request: the daemon's wall clock need not be that of this machine, and
an answer may come late.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Callable, Dict, List, Union

from seriatim.app import Context
from seriatim.client import Delivery
from seriatim.errors import AlreadySettled, LockLost, NotFound, is_of_proxy
from seriatim.outcome import described

logger = logging.getLogger("seriatim")

#: How often is looked which locks are to be renewed: the shortest lock lasts a second.
LOOK = 0.2
#: How long the lock of one message is renewed if nothing is said, as for the handlers of a daemon.
RENEW_FOR = 300.0
#: The shortest time in which a renewal has to be answered.
LIMIT_MIN = 0.5


class Held:
    """A delivery in somebody's hands, with its lock. ``asked`` says when it was asked for."""

    def __init__(self, delivery: Delivery, asked: float, renew_for: float, clock: Callable[[], float]) -> None:
        self.delivery = delivery
        self.context = Context(delivery)
        self.has_ended = False
        self.clock = clock
        self._is_asking = False
        # It was handed out at some time while the daemon was asked: it is renewed as if that had been at the beginning, and
        # counts as lost as if it had been at the end.
        received = clock()
        self._due = asked + delivery.lock_seconds / 2
        self._ends = received + delivery.lock_seconds
        self.renewed_until = received + renew_for

    def is_due(self) -> bool:
        """Whether it is to be renewed now. Tells the handler when the lock is over without that."""
        now = self.clock()
        if self.context.lost.is_set():
            return False
        if now >= self._ends:
            self._lose("it was not renewed any more" if now > self.renewed_until else "no renewal was answered in time")
        return self._due <= now < min(self._ends, self.renewed_until) and not self._is_asking

    def begin_renewal(self) -> None:
        """Renews the lock in a thread of its own: one that hangs holds up no other."""
        self._is_asking = True
        try:
            threading.Thread(target=self.renew, name="seriatim-renewal", daemon=True).start()
        except RuntimeError as error:
            # There is no room for another thread; the next look tries again.
            self._is_asking = False
            logger.warning("cannot renew the lock on %r yet: %s", self.delivery, error)

    def renew(self) -> None:
        """Renews the lock, or tells the handler that it is lost. What else goes wrong is tried again while there is time."""
        asked = self.clock()
        try:
            # Half of what is left, so that there is time for another try.
            self.delivery.renew(timeout=max((self._ends - asked) / 2, LIMIT_MIN))
            self._due = asked + self.delivery.lock_seconds / 2
            self._ends = asked + self.delivery.lock_seconds
        except Exception as error:
            if _is_over(error):
                self._lose(error)
            # Often enough for the time that is left, and no flood where every answer is a refusal.
            now = self.clock()
            self._due = now + (self._ends - now) / 8
            if not (self.has_ended or self.context.lost.is_set()):
                logger.warning("cannot renew the lock on %r yet: %s", self.delivery, described(error))
        finally:
            self._is_asking = False

    def _lose(self, why: Union[str, Exception]) -> None:
        if not (self.has_ended or self.context.lost.is_set()):  # Else it was settled meanwhile, or is known to be lost.
            logger.warning("the lock on %r is lost: %s", self.delivery, why)
            self.context.lost.set()


def _is_over(error: Exception) -> bool:
    """Whether the daemon says that the lock is over; that it was not found may also say somebody between, who knows nothing of it."""
    return isinstance(error, (LockLost, AlreadySettled, NotFound)) and not is_of_proxy(error)


class Locks:
    """All locks of a worker. Each is renewed for ``renew_for`` seconds; then it runs out by itself."""

    def __init__(self, renew_for: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._renew_for = renew_for
        self._held: Dict[str, Held] = {}
        self._lock = threading.Lock()

    def hold(self, delivery: Delivery, asked: float) -> Held:
        """Renews its lock from now on."""
        held = Held(delivery, asked, self._renew_for, self.clock)
        with self._lock:
            self._held[delivery.delivery] = held
        return held

    def let_go(self, held: Held) -> None:
        """Renews its lock no more."""
        held.has_ended = True
        with self._lock:
            self._held.pop(held.delivery.delivery, None)

    def run(self, done: threading.Event) -> None:
        """Renews until all is done."""
        while not done.wait(LOOK):
            for held in self._all():
                if held.is_due():
                    held.begin_renewal()

    def _all(self) -> List[Held]:
        with self._lock:
            return list(self._held.values())
