"""What can go wrong: a refusal of the daemon, or a daemon that cannot be reached."""

from __future__ import annotations

from typing import Any, Mapping, Optional


class SeriatimError(Exception):
    """Anything that this package raises."""


class Unreachable(SeriatimError):
    """The daemon could not be reached, or no answer of it came. Whether the request took effect is not known."""


class Refused(SeriatimError):
    """The daemon answered no, and nothing was changed.

    ``code`` says it to programs (as ``place_taken``), ``detail`` to people, ``status`` is the HTTP status and ``field`` names
    what is wrong, if something is.
    """

    def __init__(self, code: str, detail: str, status: int, field: Optional[str] = None) -> None:
        super().__init__(f"{detail} ({code})")
        self.code = code
        self.detail = detail
        self.status = status
        self.field = field


class NotFound(Refused):
    """There is no such queue, workflow, message or delivery."""


class LockLost(Refused):
    """The lock on a message is not held any more: somebody else may have the message by now."""


class AlreadySettled(Refused):
    """The delivery was settled in another way before."""


class PlaceTaken(Refused):
    """Another message has this place in its workflow, or the place is settled."""


class QueueFull(Refused):
    """The queue, the workflow or the disk takes no more."""


class Unauthorized(Refused):
    """The key is missing, is not known, or has no right for this."""


class Unavailable(Refused):
    """The daemon is stopping or has too much to do; the same may be asked again."""


_BY_CODE = {
    "lock_lost": LockLost,
    "delivery_settled": AlreadySettled,
    "place_taken": PlaceTaken,
    "already_settled": PlaceTaken,
    "queue_full": QueueFull,
    "workflow_full": QueueFull,
    "storage_full": QueueFull,
}
_BY_STATUS = {401: Unauthorized, 403: Unauthorized, 404: NotFound, 429: Unavailable, 503: Unavailable}
#: After these nobody knows whether it was done: another node has not answered, or an engine has stopped that may have it in its file.
_NOT_KNOWN = ("unanswered", "stopped")
#: How the codes of answers begin that are not the daemon's.
_OF_PROXIES = "http_"


def failure(problem: Mapping[str, Any], status: int) -> SeriatimError:
    """The exception for a problem document (RFC 9457), which is empty where somebody between has answered."""
    code = str(problem.get("code") or f"{_OF_PROXIES}{status}")
    detail = str(problem.get("detail") or problem.get("title") or f"the answer has the HTTP status {status}")
    # A proxy that fails says nothing of what was done before; with 503 it says that it has not begun.
    has_failed_between = status in (502, 504) or (code.startswith(_OF_PROXIES) and status >= 500 and status != 503)
    if code in _NOT_KNOWN or has_failed_between:
        return Unreachable(f"{detail} ({code})")
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status) or Refused
    field = problem.get("field")
    return kind(code, detail, status, None if field is None else str(field))


def is_of_proxy(error: Refused) -> bool:
    """Whether somebody between has refused, who knows nothing of messages."""
    return error.code.startswith(_OF_PROXIES)
