"""How a handler says that its message is not done: returned or raised."""

from __future__ import annotations

from typing import Any, Dict, Optional

from seriatim.message import Duration, Instant, instant, told
from seriatim.requests import dead_letter, retry


class Outcome(Exception):
    """How a message ends that is not completed. It may be returned or raised."""

    #: The verb that settles a delivery so.
    verb = ""

    def fields(self) -> Dict[str, Any]:
        """What the verb takes."""
        raise NotImplementedError

    def answer(self) -> Dict[str, Any]:
        """The answer of a program that the daemon runs."""
        return {"outcome": self.verb, **self.fields()}


class Retry(Outcome):
    """It has failed and is tried again in its place; nothing behind it in its workflow is handled before."""

    verb = "abandon"

    def __init__(
        self, reason: Optional[str] = None, *, after: Optional[Duration] = None, at: Optional[Instant] = None
    ) -> None:
        super().__init__(reason or "the handler asked for a retry")
        self.reason, self.after, self.at = reason, after, at

    def fields(self) -> Dict[str, Any]:
        return retry(self.after, self.at, self.reason)

    def because(self, error: BaseException) -> "Retry":
        """The same, with the text of an error as its reason."""
        return Retry(self.reason or described(error), after=self.after, at=self.at)

    def answer(self) -> Dict[str, Any]:
        return {"outcome": "retry", **self.fields()}


class Defer(Outcome):
    """It is set aside, until an instant or until it is received by its number; the workflow goes on without it."""

    verb = "defer"

    def __init__(self, until: Optional[Instant] = None) -> None:
        super().__init__("deferred")
        self.until = until

    def fields(self) -> Dict[str, Any]:
        return {} if self.until is None else {"until": instant(self.until)}


class DeadLetter(Outcome):
    """It is moved aside for good."""

    verb = "dead_letter"

    def __init__(self, reason: str, description: str = "") -> None:
        super().__init__(reason)
        self.reason, self.description = reason, description

    def fields(self) -> Dict[str, Any]:
        return dead_letter(self.reason, self.description)


def described(error: BaseException) -> str:
    """An error in one line."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        # The text of an error may fail itself; what has failed is told all the same.
        text = ""
    return told(f"{type(error).__name__}: {text}"[:1000]) if text else type(error).__name__
