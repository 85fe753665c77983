"""Every request to the daemon and how its answer is read, without any input or output: both clients share it."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import ssl
import uuid
from typing import Any, Callable, Dict, Generic, Iterable, List, Mapping, Optional, Tuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from seriatim.errors import SeriatimError, Unreachable, failure
from seriatim.message import Duration, Instant, Message, Receipt, duration, instant, told
from seriatim.reading import UNREADABLE, load

T = TypeVar("T")

#: Where the daemon listens when nothing else is said.
URL_DEFAULT = "http://127.0.0.1:7700"
#: Most messages of one batch that is accepted as a whole.
BATCH_MAX = 1024
#: Most rows of a page.
PAGE_MAX = 1000


@dataclasses.dataclass(frozen=True)
class Request(Generic[T]):
    """One request. ``repeatable`` says that asking it again does no more than asking it once."""

    method: str
    path: str
    read: Callable[[Any], T]
    body: Optional[bytes] = None
    headers: Tuple[Tuple[str, str], ...] = ()
    repeatable: bool = False
    #: How long the daemon may take on purpose before it answers, in seconds.
    wait: float = 0.0
    #: Whether the answer is one JSON value a line.
    lines: bool = False
    #: Whether the answer is read as bytes.
    raw: bool = False


@dataclasses.dataclass(frozen=True)
class Address:
    """A daemon: where it is, and with which key it is asked."""

    host: str
    port: int
    prefix: str
    tls: Optional[ssl.SSLContext]
    key: Optional[str]
    url: str

    @classmethod
    def of(cls, url: Optional[str], key: Optional[str], tls: Optional[ssl.SSLContext]) -> "Address":
        """Reads a URL; without one ``SERIATIM_URL``, without a key ``SERIATIM_KEY``."""
        url = url or os.environ.get("SERIATIM_URL") or URL_DEFAULT
        # A key that was read from a file ends with a line.
        key = (key or os.environ.get("SERIATIM_KEY") or "").strip() or None
        if key is not None and not (key.isascii() and key.isprintable()):
            raise ValueError("a key has letters, digits and signs of ASCII only, and this one something else")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no address of a daemon; one is like {URL_DEFAULT}")
        if parts.scheme == "https" and tls is None:
            tls = ssl.create_default_context()
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return cls(parts.hostname, port, parts.path.rstrip("/"), tls if parts.scheme == "https" else None, key, url)

    @property
    def authority(self) -> str:
        """Host and port as a request names them: an address of IPv6 stands in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def headers(self, request: Request[Any]) -> Dict[str, str]:
        headers = dict(request.headers)
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        return headers

    def unreachable(self, why: object) -> Unreachable:
        return Unreachable(f"cannot reach the daemon at {self.url}: {why}; `seriatim run` starts it")


def decode(request: Request[T], status: int, body: bytes) -> T:
    """The answer, or why there is none as an exception."""
    if status >= 300:
        raise failure(_problem(body), status)
    if request.raw:
        return request.read(body)
    try:
        if request.lines:
            answer: Any = [load(line) for line in body.splitlines() if line.strip()]
        else:
            answer = load(body) if body.strip() else None
    except UNREADABLE as error:
        raise SeriatimError(f"cannot understand the answer to {request.method} {request.path}: {error}") from error
    return request.read(answer)


def _problem(body: bytes) -> Mapping[str, Any]:
    """A problem of the daemon; nothing where somebody between has answered, in whatever words."""
    try:
        problem = load(body)
    except UNREADABLE:
        return {}
    return problem if isinstance(problem, dict) else {}


_JSON = (("Content-Type", "application/json"),)


def _post(path: str, read: Callable[[Any], T], fields: Optional[Mapping[str, Any]] = None, **more: Any) -> Request[T]:
    # JSON has no NaN: the daemon would refuse it without saying where it stands.
    body = json.dumps(fields if fields is not None else {}, allow_nan=False).encode()
    return Request("POST", path, read, body, _JSON, **more)


def _as_is(answer: Any) -> Any:
    return answer


def _nothing(_: Any) -> None:
    return None


def queue_path(queue: str, rest: str = "") -> str:
    return f"/v1/queues/{quote(queue, safe='')}{rest}"


def get(path: str, **query: Any) -> Request[Any]:
    # A word of JSON, as the daemon has them, and not of Python.
    words = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}
    asked = {name: value for name, value in words.items() if value is not None}
    return Request("GET", f"{path}?{urlencode(asked)}" if asked else path, _as_is, repeatable=True)


class Blocked:
    """All workflows that do not go on, page after page: ``ask`` is the next request, if there is one."""

    def __init__(self, queue: Optional[str] = None) -> None:
        self.rows: List[Dict[str, Any]] = []
        self._queue = queue
        self.ask: Optional[Request[Any]] = self._page(None)

    def add(self, page: Mapping[str, Any]) -> None:
        """Takes the answer to what was asked."""
        self.rows += page["blocked"]
        after = page.get("after")
        self.ask = None if after is None else self._page(after)

    def _page(self, after: Optional[str]) -> Request[Any]:
        return get("/v1/blocked", queue=self._queue, limit=PAGE_MAX, after=after)


def state(path: str, workflow: str) -> Request[Any]:
    """A workflow's state: as JSON has it, else as bytes."""

    def read(body: bytes) -> Any:
        try:
            return json.loads(body)
        except UNREADABLE:
            return body

    return Request("GET", f"{path}?{urlencode({'id': workflow})}", read, repeatable=True, raw=True)


def put_queue(queue: str, options: Mapping[str, Any]) -> Request[Any]:
    return Request("PUT", queue_path(queue), _as_is, json.dumps(options).encode(), _JSON, repeatable=True)


def delete_queue(queue: str) -> Request[None]:
    return Request("DELETE", queue_path(queue), _nothing)


def send(queue: str, messages: Iterable[Message]) -> Request[List[Receipt]]:
    """All messages are accepted, or none; the same request that is asked again is done once."""
    lines = [json.dumps(message.envelope()) for message in messages]
    if not 0 < len(lines) <= BATCH_MAX:
        raise ValueError(f"a batch has 1 to {BATCH_MAX} messages, and this one has {len(lines)}")

    def read(answer: Any) -> List[Receipt]:
        return [Receipt.read(line) for line in answer]

    headers = (("Content-Type", "application/x-ndjson"), ("Idempotency-Key", str(uuid.uuid4())))
    return Request("POST", queue_path(queue, "/messages?atomic=true"), read, "\n".join(lines).encode(), headers, True, lines=True)


def receive(queue: str, maximum: int, wait: Duration, run: bool, state: bool, raw: bool) -> Request[Any]:
    fields = {"max": maximum, "wait": duration(wait), "run": run, "state": state, **_raw(raw)}
    seconds = wait if isinstance(wait, (int, float)) else wait.total_seconds()
    return _post(queue_path(queue, "/receive"), _as_is, fields, wait=float(seconds))


def receive_deferred(queue: str, numbers: List[int], state: bool, raw: bool) -> Request[Any]:
    fields = {"sequence_numbers": numbers, "state": state, **_raw(raw)}
    return _post(queue_path(queue, "/receive_deferred"), _as_is, fields)


def _raw(raw: bool) -> Dict[str, bool]:
    # An older daemon does not know the word, and is asked as it was.
    return {"raw": True} if raw else {}


def settle(queue: str, delivery: str, verb: str, fields: Optional[Mapping[str, Any]] = None) -> Request[Any]:
    """A settlement that is asked again within a minute is answered as it was."""
    path = queue_path(queue, f"/deliveries/{quote(delivery, safe='')}/{verb}")
    return _post(path, _as_is, fields, repeatable=True)


def complete_many(queue: str, deliveries: List[str]) -> Request[Any]:
    return _post(queue_path(queue, "/complete"), _as_is, {"deliveries": deliveries}, repeatable=True)


def run(queue: str, token: str, verb: str, fields: Optional[Mapping[str, Any]] = None) -> Request[Any]:
    """As :func:`settle`, for a run."""
    return _post(queue_path(queue, f"/runs/{quote(token, safe='')}/{verb}"), _as_is, fields, repeatable=True)


def operate(queue: str, workflow: str, verb: str, fields: Mapping[str, Any]) -> Request[Any]:
    asked = {name: value for name, value in fields.items() if value is not None}
    return _post(queue_path(queue, f"/workflow/{verb}?{urlencode({'id': workflow})}"), _as_is, asked)


def redrive(queue: str, number: int, position: Optional[int]) -> Request[Any]:
    fields = {} if position is None else {"position": position}
    return _post(queue_path(queue, f"/dead_letters/{number}/redrive"), _as_is, fields)


def redrive_many(queue: str, fields: Mapping[str, Any]) -> Request[Any]:
    return _post(queue_path(queue, "/dead_letters/redrive"), _as_is, fields)


def cancel(queue: str, number: int, void: bool) -> Request[Any]:
    return Request("DELETE", queue_path(queue, f"/messages/{number}{'?void=true' if void else ''}"), _as_is)


def reschedule(queue: str, number: int, at: Instant) -> Request[Any]:
    return _post(queue_path(queue, f"/messages/{number}/reschedule"), _as_is, {"at": instant(at)})


#: A state that is left as it is.
KEEP: Any = object()


def completion(state: Any = KEEP, sends: Iterable[Tuple[str, Message]] = ()) -> Dict[str, Any]:
    """What is one transaction with a completion: the workflow's new state (``None`` clears it), and messages to send."""
    fields: Dict[str, Any] = {}
    if state is None:
        fields["clear_state"] = True
    elif isinstance(state, (bytes, bytearray)):
        fields["state_base64"] = base64.b64encode(state).decode()
    elif state is not KEEP:
        fields["state"] = state
    sent = [message.envelope(queue) for queue, message in sends]
    if sent:
        fields["send"] = sent
    return fields


def retry(after: Optional[Duration] = None, at: Optional[Instant] = None, reason: Optional[str] = None) -> Dict[str, Any]:
    """When a failed message is tried again, and why it failed."""
    fields: Dict[str, Any] = {}
    if after is not None:
        fields["retry_after"] = duration(after)
    if at is not None:
        fields["retry_at"] = instant(at)
    if reason is not None:
        fields["reason"] = told(reason)
    return fields


def dead_letter(reason: str, description: str) -> Dict[str, Any]:
    """Why a message is moved aside."""
    return {"reason": told(reason), "description": told(description)}
