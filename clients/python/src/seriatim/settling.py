"""Settling what a worker has handled, also where the daemon refuses what its handler wants."""

from __future__ import annotations

import itertools
import logging
import threading
from typing import Any

from seriatim import requests
from seriatim.errors import AlreadySettled, LockLost, QueueFull, Refused, Unavailable, is_of_proxy
from seriatim.locks import Held
from seriatim.outcome import Outcome, Retry, described
from seriatim.requests import Request

logger = logging.getLogger("seriatim")

#: Between two tries of a settlement that there is no room for, in seconds; the last one again and again.
ROOM_PAUSES = (0.5, 1.0, 2.0, 5.0)
#: How long room is waited for, with the message in hand, in seconds.
ROOM_FOR = 60.0
#: Refusals after which there is nothing to say of a delivery any more, or nobody to say it to.
_OVER = (LockLost, AlreadySettled, Unavailable)


def ending(held: Held, outcome: Outcome) -> Request[Any]:
    """What settles a delivery so."""
    return requests.settle(held.delivery.queue, held.delivery.delivery, outcome.verb, outcome.fields())


def release(held: Held) -> Request[Any]:
    """What gives a delivery back uncounted."""
    return requests.settle(held.delivery.queue, held.delivery.delivery, "release")


def settle(held: Held, wanted: Request[Any], stop: threading.Event) -> None:
    """Settles a delivery. What the daemon refuses for good has failed, with its reason: else the lock would have to run out first."""
    try:
        try:
            _settle_with_room(held, wanted, stop)
        except Refused as refused:
            if isinstance(refused, _OVER) or is_of_proxy(refused):
                raise
            logger.warning("cannot settle %r as its handler said: %s; it has failed", held.delivery, refused)
            held.delivery._transport.call(ending(held, Retry(described(refused))))
    except Exception as error:
        verb = wanted.path.rsplit("/", 1)[-1]
        logger.warning("cannot settle %r (%s): %s; it comes again", held.delivery, verb, described(error))


def _settle_with_room(held: Held, wanted: Request[Any], stop: threading.Event) -> None:
    """Tries again while there is no room. A message is not to blame for that: at the end it is given back uncounted."""
    ends = min(held.clock() + ROOM_FOR, held.renewed_until)
    for pause in itertools.chain(ROOM_PAUSES, itertools.repeat(ROOM_PAUSES[-1])):
        try:
            held.delivery._transport.call(wanted)
            return
        except QueueFull as full:
            logger.warning("there is no room to settle %r: %s; it waits for that", held.delivery, full)
        if held.clock() + pause > ends or stop.wait(pause):
            held.delivery._transport.call(release(held))
            return
