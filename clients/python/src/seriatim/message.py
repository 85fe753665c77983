"""Messages: what is sent, and what is received."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import json
from typing import Any, Dict, Iterator, List, Mapping, Optional, Union

#: A body: bytes as they are, text as UTF-8, anything else as JSON.
Body = Union[bytes, str, Mapping[str, Any], List[Any], int, float, bool, None]
#: A property of a message.
Property = Union[str, int, float, bool, bytes]
#: A length of time: seconds, or as ``timedelta``.
Duration = Union[int, float, datetime.timedelta]
#: An instant: with a time zone.
Instant = datetime.datetime


def seconds(value: Duration) -> float:
    """A length of time in seconds."""
    number = value.total_seconds() if isinstance(value, datetime.timedelta) else float(value)
    if number < 0:
        raise ValueError(f"a duration cannot be negative, and {number} s is")
    return number


def duration(value: Duration) -> str:
    """A length of time as the daemon reads it: in milliseconds."""
    return f"{round(seconds(value) * 1000)}ms"


def instant(value: Instant) -> str:
    """An instant as the daemon reads it: RFC 3339."""
    if value.tzinfo is None:
        raise ValueError("an instant needs a time zone: datetime.now(timezone.utc), for example")
    return value.astimezone(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parsed(text: Optional[str]) -> Optional[Instant]:
    """An instant that the daemon has written."""
    return None if text is None else datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def told(text: str) -> str:
    """A text for people, with a question mark for what UTF-8 has not: half of a character, as in a file's name that Python could not read."""
    return text.encode(errors="replace").decode()


def lock_seconds(answer: Mapping[str, Any]) -> float:
    """How long a lock lasts from the moment of hand-out, or of its renewal."""
    if "lock_ms" in answer:
        return float(answer["lock_ms"]) / 1000
    # An older daemon says only until when, by its own wall clock.
    now = datetime.datetime.now(datetime.timezone.utc)
    return max(((parsed(answer["locked_until"]) or now) - now).total_seconds(), 1.0)


def _property(value: Property) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _read_property(value: Any) -> Property:
    if isinstance(value, dict) and set(value) == {"base64"}:
        return base64.b64decode(value["base64"])
    return value  # type: ignore[no-any-return]


@dataclasses.dataclass
class Message:
    """A message to send.

    ``workflow`` is handled one message at a time; ``position`` (1, 2, 3) or ``after`` (the ``id`` of its predecessor, with ``first``
    for the first) say its place there, where the queue's order has places.
    """

    body: Body = b""
    workflow: Optional[str] = None
    position: Optional[int] = None
    after: Optional[str] = None
    first: bool = False
    id: Optional[str] = None
    subject: Optional[str] = None
    content_type: Optional[str] = None
    correlation_id: Optional[str] = None
    reply_to: Optional[str] = None
    properties: Dict[str, Property] = dataclasses.field(default_factory=dict)
    time_to_live: Optional[Duration] = None
    schedule_at: Optional[Instant] = None
    delay: Optional[Duration] = None

    def envelope(self, queue: Optional[str] = None) -> Dict[str, Any]:
        """The message as JSON, as the daemon reads it."""
        fields: Dict[str, Any] = {
            "queue": queue,
            "workflow_id": self.workflow,
            "position": self.position,
            "after": self.after,
            "first": self.first or None,
            "message_id": self.id,
            "subject": self.subject,
            "content_type": self.content_type,
            "correlation_id": self.correlation_id,
            "reply_to": self.reply_to,
            "properties": {name: _property(value) for name, value in self.properties.items()} or None,
            "time_to_live": None if self.time_to_live is None else duration(self.time_to_live),
            "schedule_at": None if self.schedule_at is None else instant(self.schedule_at),
            "delay": None if self.delay is None else duration(self.delay),
        }
        envelope = {name: value for name, value in fields.items() if value is not None}
        if isinstance(self.body, (bytes, bytearray)):
            envelope["body_base64"] = base64.b64encode(self.body).decode()
        elif isinstance(self.body, str):
            envelope["body_text"] = self.body
        else:
            envelope["body"] = self.body
        texts = (*envelope.values(), *self.properties, *self.properties.values())
        # Fails where there is half of a character: to the daemon, all that it stands in could not be read.
        "".join(text for text in texts if isinstance(text, str)).encode()
        return envelope


@dataclasses.dataclass(frozen=True)
class Receipt:
    """What became of a message that was sent: ``accepted``, ``duplicate``, ``already_settled`` or ``dead_lettered``."""

    status: str
    sequence_number: Optional[int] = None

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> "Receipt":
        return cls(str(answer["status"]), answer.get("sequence_number"))


class Received:
    """A message as it is handed out. What the daemon said of it stands in ``envelope``."""

    def __init__(self, envelope: Mapping[str, Any]) -> None:
        self.envelope = envelope
        self.queue: str = envelope["queue"]
        self.sequence_number: int = envelope["sequence_number"]
        self.workflow: Optional[str] = envelope.get("workflow_id")
        self.position: Optional[int] = envelope.get("position")
        self.id: Optional[str] = envelope.get("message_id")
        self.subject: Optional[str] = envelope.get("subject")
        self.content_type: Optional[str] = envelope.get("content_type")
        self.correlation_id: Optional[str] = envelope.get("correlation_id")
        self.reply_to: Optional[str] = envelope.get("reply_to")
        #: How often the message was handed out, this time included.
        self.delivery_count: int = envelope["delivery_count"]
        self.accepted_at = parsed(envelope.get("accepted_at"))
        self.expires_at = parsed(envelope.get("expires_at"))
        self.properties: Dict[str, Property] = {
            name: _read_property(value) for name, value in envelope.get("properties", {}).items()
        }

    @property
    def body(self) -> bytes:
        """The body as bytes.

        They are those that were sent, except where the content type is JSON: such a body is handed out as a JSON value and written
        anew here, so that ``1.10`` is ``1.1``, and white space and repeated names are gone. Whoever needs its bytes, as to check a
        signature, receives with ``raw=True`` (:class:`App`, :meth:`Queue.receive`). JSON that Python cannot read is not
        written anew, but has spaces for its line ends, and none around it.
        """
        if "body" in self.envelope:
            return json.dumps(self.envelope["body"], separators=(",", ":"), ensure_ascii=False).encode()
        if "body_text" in self.envelope:
            return str(self.envelope["body_text"]).encode()
        return base64.b64decode(self.envelope.get("body_base64", ""))

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    def json(self) -> Any:
        """The body as JSON has it."""
        return self.envelope["body"] if "body" in self.envelope else json.loads(self.body)

    @property
    def state(self) -> Any:
        """The state of the message's workflow: as JSON has it, else as bytes; ``None`` when there is none."""
        if "state_base64" in self.envelope:
            return base64.b64decode(self.envelope["state_base64"])
        return self.envelope.get("state")

    def __repr__(self) -> str:
        return f"<message {self.queue}#{self.sequence_number} of workflow {self.workflow!r}>"


class ReceivedRun:
    """Consecutive messages of one workflow, as they are handed out."""

    def __init__(self, queue: str, answer: Mapping[str, Any]) -> None:
        self._queue = queue
        self._run: Optional[str] = answer.get("run")
        # The state of their workflow stands with the first only.
        first: Mapping[str, Any] = next(iter(answer["deliveries"]), {})
        state = {name: first[name] for name in ("state", "state_base64") if name in first}
        self.messages = [Received({**state, **envelope}) for envelope in answer["deliveries"]]
        #: Until when it is locked, by the daemon's wall clock, and how long the lock lasts; ``None`` where there is nothing in it.
        self.locked_until: Optional[Instant] = None
        self.lock_seconds: Optional[float] = None
        if "locked_until" in first:
            self._note_lock(first)

    def _note_lock(self, answer: Mapping[str, Any]) -> None:
        self.locked_until, self.lock_seconds = parsed(answer["locked_until"]), lock_seconds(answer)

    def __iter__(self) -> Iterator[Received]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)

    def _settlement(self, completed: Optional[int], next: Optional[Mapping[str, Any]], more: Mapping[str, Any]) -> Dict[str, Any]:
        """What settles it: its first messages are completed (all, if nothing is said), and the one behind them ends so."""
        fields: Dict[str, Any] = {"completed": len(self) if completed is None else completed, **more}
        if next is None:
            return fields
        ending = self.messages[fields["completed"] :][:1]
        if ending and next.get("verb") == "abandon":
            # Which of the queue's exact delays is due.
            fields.setdefault("next_delivery_count", ending[0].delivery_count)
        return {**fields, "next": _read_by_daemon(next)}


def _read_by_daemon(next: Mapping[str, Any]) -> Dict[str, Any]:
    """How a message ends, with times as the daemon reads them; a text is one already."""
    fields = dict(next)
    for name, written in (("retry_after", duration), ("retry_at", instant), ("until", instant)):
        if fields.get(name) is not None and not isinstance(fields[name], str):
            fields[name] = written(fields[name])
    texts = {name: told(fields[name]) for name in ("reason", "description") if isinstance(fields.get(name), str)}
    return {**fields, **texts}
