"""The client: queues, messages, deliveries, and what an operator does."""

from __future__ import annotations

import ssl
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from seriatim import requests
from seriatim.errors import NotFound
from seriatim.message import Body, Duration, Instant, Message, Received, ReceivedRun, Receipt, instant, lock_seconds, parsed
from seriatim.requests import KEEP, Address
from seriatim.transport import Transport

#: How a message that is sent along with a completion is given: its queue, and the message.
Send = Tuple[str, Message]


class Delivery(Received):
    """A message under a lock. It is settled once: completed, abandoned, deferred, dead-lettered or released.

    One that is dropped comes back when its lock runs out, and that counts as a failed attempt.
    """

    def __init__(self, transport: Transport, envelope: Mapping[str, Any]) -> None:
        super().__init__(envelope)
        self._transport = transport
        self.delivery: str = envelope["delivery"]
        self.locked_until = parsed(envelope["locked_until"])
        #: How long the lock lasts from the moment of hand-out, or of its renewal: ``locked_until`` is by the daemon's wall clock.
        self.lock_seconds = lock_seconds(envelope)

    def complete(self, state: Any = KEEP, send: Iterable[Send] = ()) -> List[Receipt]:
        """The message is done. The workflow's new state and messages to send are one transaction with that."""
        answer = self._settle("complete", requests.completion(state, send))
        return [Receipt.read(receipt) for receipt in answer.get("receipts", [])]

    def abandon(
        self, delay: Optional[Duration] = None, at: Optional[Instant] = None, reason: Optional[str] = None
    ) -> None:
        """It has failed: it is tried again in its place, after the delay, at the instant, or as its queue says."""
        self._settle("abandon", requests.retry(delay, at, reason))

    def defer(self, until: Optional[Instant] = None) -> None:
        """It is set aside until an instant, or until it is received by its number; the workflow goes on without it."""
        self._settle("defer", {} if until is None else {"until": instant(until)})

    def dead_letter(self, reason: str, description: str = "") -> None:
        """It is moved aside for good."""
        self._settle("dead_letter", requests.dead_letter(reason, description))

    def release(self) -> None:
        """It was not begun: it is given back as if it had not been handed out."""
        self._settle("release", {})

    def renew(self, timeout: Optional[float] = None) -> None:
        """The lock begins anew. ``timeout`` says how many seconds that may take, with all tries."""
        answer = self._settle("renew", {}, timeout)
        self.locked_until, self.lock_seconds = parsed(answer["locked_until"]), lock_seconds(answer)

    def _settle(self, verb: str, fields: Mapping[str, Any], limit: Optional[float] = None) -> Dict[str, Any]:
        return dict(self._transport.call(requests.settle(self.queue, self.delivery, verb, fields), limit) or {})


class Run(ReceivedRun):
    """Consecutive messages of one workflow under one lock, settled from the first on."""

    def __init__(self, transport: Transport, queue: str, answer: Mapping[str, Any]) -> None:
        super().__init__(queue, answer)
        self._transport = transport

    def settle(
        self,
        completed: Optional[int] = None,
        next: Optional[Mapping[str, Any]] = None,
        state: Any = KEEP,
        send: Iterable[Send] = (),
        **more: Any,
    ) -> None:
        """Completes the first messages (all, if nothing is said); the workflow's new state and messages to send are one transaction
        with that. ``next`` says how the one behind them ends, as ``{"verb": "abandon", "retry_after": 30}``; the others are given back."""
        if self._run is not None:
            fields = self._settlement(completed, next, {**requests.completion(state, send), **more})
            self._transport.call(requests.run(self._queue, self._run, "settle", fields))

    def renew(self) -> None:
        """The lock begins anew."""
        if self._run is not None:
            self._note_lock(self._transport.call(requests.run(self._queue, self._run, "renew")))


class Queue:
    """A queue of the daemon. Cheap to make; whether it exists is seen when it is asked."""

    def __init__(self, transport: Transport, name: str) -> None:
        self._transport = transport
        self.name = name

    def create(self, **options: Any) -> Dict[str, Any]:
        """Creates the queue, or gives it these options in the place of all it had; one that is not named gets its default.

        They are those of a definition, ``order="position"``, ``delivery={"lock": "1m"}``, but for what only a definition has:
        ``key``, ``retry.delays``, ``delivery.defer_for``, ``delivery.concurrency`` and handlers are refused.
        """
        return dict(self._transport.call(requests.put_queue(self.name, options)))

    def delete(self) -> None:
        """Deletes the queue with everything in it."""
        self._transport.call(requests.delete_queue(self.name))

    def view(self) -> Dict[str, Any]:
        """Its counts and options."""
        return dict(self._look(""))

    def send(self, body: Union[Body, Message] = b"", **fields: Any) -> Receipt:
        """Sends one message; it is on disk when this returns. Fields are those of :class:`Message`."""
        message = body if isinstance(body, Message) else Message(body, **fields)
        return self.send_batch([message])[0]

    def send_batch(self, messages: Iterable[Message]) -> List[Receipt]:
        """Sends up to 1,024 messages: all are accepted, or none. A cluster does so for workflows of one partition only, and refuses
        the others as ``unsupported``: send them one by one."""
        return self._transport.call(requests.send(self.name, messages))

    def receive(self, max: int = 1, wait: Duration = 0, state: bool = False, raw: bool = False) -> List[Delivery]:
        """Up to ``max`` messages of different workflows, each under its lock. Waits for the first, at most a minute.

        ``raw`` asks for bodies of JSON byte for byte: see :attr:`Received.body`.
        """
        answer = self._transport.call(requests.receive(self.name, max, wait, False, state, raw))
        return [Delivery(self._transport, envelope) for envelope in answer["deliveries"]]

    def receive_run(self, max: int = 100, wait: Duration = 0, state: bool = False, raw: bool = False) -> Run:
        """Up to ``max`` consecutive messages of one workflow, under one lock."""
        answer = self._transport.call(requests.receive(self.name, max, wait, True, state, raw))
        return Run(self._transport, self.name, answer)

    def receive_deferred(self, numbers: Iterable[int], state: bool = False, raw: bool = False) -> List[Delivery]:
        """Messages that were set aside, by their numbers: all, or none."""
        answer = self._transport.call(requests.receive_deferred(self.name, list(numbers), state, raw))
        return [Delivery(self._transport, envelope) for envelope in answer["deliveries"]]

    def complete(self, deliveries: Iterable[Delivery]) -> Dict[str, Any]:
        """Completes many deliveries with one request; what became of each stands in ``results``."""
        ids = [delivery.delivery for delivery in deliveries]
        return dict(self._transport.call(requests.complete_many(self.name, ids)))

    def cancel(self, number: int, void: bool = False) -> None:
        """Cancels a scheduled message. Its place is free again, or, with ``void``, settled."""
        self._transport.call(requests.cancel(self.name, number, void))

    def reschedule(self, number: int, at: Instant) -> None:
        """Moves a scheduled message to another instant."""
        self._transport.call(requests.reschedule(self.name, number, at))

    def workflow(self, id: str) -> "Workflow":
        """A workflow, to look at it and to operate on it."""
        return Workflow(self._transport, self.name, id)

    def blocked(self) -> List[Dict[str, Any]]:
        """Its workflows that do not go on: why, since when, and what comes next."""
        return _blocked(self._transport, self.name)

    def messages(self, limit: int = 100, **filters: Any) -> Dict[str, Any]:
        """A page of its messages, of any status."""
        return dict(self._look("/messages", limit=limit, **filters))

    def dead_letters(self, limit: int = 100, **filters: Any) -> Dict[str, Any]:
        """A page of its dead letters."""
        return dict(self._look("/dead_letters", limit=limit, **filters))

    def redrive(self, number: int, position: Optional[int] = None) -> Dict[str, Any]:
        """Puts a dead letter back where it was, or at another position."""
        return dict(self._transport.call(requests.redrive(self.name, number, position)))

    def redrive_many(self, **which: Any) -> Dict[str, Any]:
        """Puts dead letters back: ``all=True``, ``workflow_id=`` or ``dead_letter_reason=``."""
        return dict(self._transport.call(requests.redrive_many(self.name, which)))

    def _look(self, rest: str, **query: Any) -> Any:
        return self._transport.call(requests.get(requests.queue_path(self.name, rest), **query))


def _blocked(transport: Transport, queue: Optional[str] = None) -> List[Dict[str, Any]]:
    blocked = requests.Blocked(queue)
    while blocked.ask is not None:
        blocked.add(transport.call(blocked.ask))
    return blocked.rows


class Workflow:
    """A workflow of a queue: what an operator sees and does. Each verb takes ``reason`` and ``dry_run``."""

    def __init__(self, transport: Transport, queue: str, id: str) -> None:
        self._transport = transport
        self.queue = queue
        self.id = id

    def view(self) -> Dict[str, Any]:
        """What it does, or why it does nothing."""
        path = requests.queue_path(self.queue, "/workflow")
        return dict(self._transport.call(requests.get(path, id=self.id)))

    def state(self) -> Any:
        """Its state: as JSON has it, else as bytes; ``None`` when there is none."""
        path = requests.queue_path(self.queue, "/workflow/state")
        try:
            return self._transport.call(requests.state(path, self.id))
        except NotFound as refused:
            if refused.code == "state_not_found":
                return None
            raise

    def hold(self, reason: Optional[str] = None, dry_run: bool = False) -> Dict[str, Any]:
        """Offers nothing of it until it is resumed."""
        return self._operate("hold", reason=reason, dry_run=dry_run)

    def resume(
        self, redrive: bool = False, dry_run: bool = False, reason: Optional[str] = None, cause: Optional[str] = None
    ) -> Dict[str, Any]:
        """Lets it go on; with ``redrive`` its dead letters are put back first. ``cause`` lifts only that of its hold, as ``"gap"``."""
        return self._operate("resume", redrive=redrive or None, dry_run=dry_run, reason=reason, cause=cause)

    def retry(self, dry_run: bool = False, reason: Optional[str] = None) -> Dict[str, Any]:
        """Tries the failed message at its head now."""
        return self._operate("retry", dry_run=dry_run, reason=reason)

    def skip(self, reason: str, dry_run: bool = False, sequence_number: Optional[int] = None) -> Dict[str, Any]:
        """Makes the message at its head a dead letter, and goes on; with ``sequence_number`` only if it is that one."""
        return self._operate("skip", reason=reason, dry_run=dry_run, sequence_number=sequence_number)

    def void(self, first: int, last: Optional[int] = None, *, reason: str, dry_run: bool = False) -> Dict[str, Any]:
        """Waits no more for missing positions."""
        return self._operate("void", **{"from": first, "to": last}, reason=reason, dry_run=dry_run)

    def skip_gap(self, reason: str, dry_run: bool = False) -> Dict[str, Any]:
        """Waits no more for what is missing before the lowest waiting message."""
        return self._operate("skip_gap", reason=reason, dry_run=dry_run)

    def release_lock(self, dry_run: bool = False, reason: Optional[str] = None) -> Dict[str, Any]:
        """Takes it from its holder."""
        return self._operate("release_lock", dry_run=dry_run, reason=reason)

    def purge(self, reason: str, dry_run: bool = False) -> Dict[str, Any]:
        """Removes its messages for good."""
        return self._operate("purge", reason=reason, dry_run=dry_run)

    def _operate(self, verb: str, **fields: Any) -> Dict[str, Any]:
        fields["dry_run"] = fields.get("dry_run") or None
        return dict(self._transport.call(requests.operate(self.queue, self.id, verb, fields)))


class Client:
    """A daemon, asked over HTTP. May be shared by threads; ``with`` closes its connections.

    ``url`` and ``key`` default to ``SERIATIM_URL`` and ``SERIATIM_KEY``. A request that may be asked again is, for ``retry_for``
    seconds, when the daemon does not answer: sends (under an idempotency key), settlements and looks.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        key: Optional[str] = None,
        *,
        timeout: float = 30.0,
        retry_for: float = 10.0,
        tls: Optional[ssl.SSLContext] = None,
    ) -> None:
        self._transport = Transport(Address.of(url, key, tls), timeout, retry_for)

    @property
    def url(self) -> str:
        """Where the daemon is."""
        return self._transport.address.url

    def queue(self, name: str) -> Queue:
        """A queue by its name."""
        return Queue(self._transport, name)

    def queues(self) -> List[Dict[str, Any]]:
        """The first 1,000 queues, in order of name."""
        return list(self._transport.call(requests.get("/v1/queues", limit=requests.PAGE_MAX))["queues"])

    def status(self) -> Dict[str, Any]:
        """How the daemon is."""
        return dict(self._transport.call(requests.get("/v1/status")))

    def blocked(self) -> List[Dict[str, Any]]:
        """Every workflow that does not go on: why, since when, and what comes next."""
        return _blocked(self._transport)

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
