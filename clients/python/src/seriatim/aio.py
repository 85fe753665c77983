"""The client for asyncio, with the standard library alone."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, TypeVar, Union

from seriatim import requests
from seriatim.client import Send
from seriatim.errors import NotFound, Unavailable, Unreachable
from seriatim.message import Body, Duration, Instant, Message, Received, ReceivedRun, Receipt, instant, lock_seconds, parsed
from seriatim.requests import KEEP, Address, Request, decode
from seriatim.transport import IDLE_MAX, KEPT_MAX, PAUSES, TIMEOUT_MIN

T = TypeVar("T")

#: Longest head of an answer, in bytes.
HEAD_MAX = 64 * 1024
_Connection = Tuple[asyncio.StreamReader, asyncio.StreamWriter]
#: A connection that nobody uses: since when, the loop that it belongs to, and itself.
_Kept = Tuple[float, asyncio.AbstractEventLoop, _Connection]


class AsyncTransport:
    """Asks one daemon over HTTP/1.1, on connections that are kept."""

    def __init__(self, address: Address, timeout: float, retry_for: float) -> None:
        self.address, self.timeout, self.retry_for = address, timeout, retry_for
        self._idle: List[_Kept] = []

    async def call(self, request: Request[T], limit: Optional[float] = None) -> T:
        """Asks, and asks again for a while what may be asked again when nobody answers: with a limit, so many seconds in all."""
        started, tries = time.monotonic(), 0
        ends = started + (self.retry_for if limit is None else min(self.retry_for, limit))
        while True:
            timeout = self.timeout + request.wait
            if limit is not None:
                timeout = max(min(timeout, started + limit - time.monotonic()), TIMEOUT_MIN)
            try:
                return await self._once(request, timeout)
            except (Unreachable, Unavailable):
                pause = PAUSES[min(tries, len(PAUSES) - 1)]
                if not request.repeatable or time.monotonic() + pause > ends:
                    raise
                await asyncio.sleep(pause)
                tries += 1

    async def _once(self, request: Request[T], timeout: float) -> T:
        try:
            status, body = await asyncio.wait_for(self._ask(request), timeout)
        except asyncio.TimeoutError as error:
            # First: in newer versions of Python it is an OSError, too, without a text.
            raise self.address.unreachable("it did not answer in time") from error
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            raise self.address.unreachable(error) from error
        return decode(request, status, body)

    async def _ask(self, request: Request[Any]) -> Tuple[int, bytes]:
        kept = self._take()
        if kept is None:
            return await self._exchange(await self._connect(), request)
        try:
            return await self._exchange(kept, request)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            # Who has closed this one, as a daemon does that begins anew, has closed the others, too.
            await self.close()
            if not request.repeatable:
                raise
            return await self._exchange(await self._connect(), request)

    async def _exchange(self, connection: _Connection, request: Request[Any]) -> Tuple[int, bytes]:
        reader, writer = connection
        is_whole = False
        try:
            body = request.body or b""
            headers = {
                "Host": self.address.authority,
                "Content-Length": str(len(body)),
                **self.address.headers(request),
            }
            head = f"{request.method} {self.address.prefix}{request.path} HTTP/1.1\r\n"
            head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            writer.write(head.encode("latin-1") + b"\r\n" + body)
            await writer.drain()
            status, fields = _read_head(await reader.readuntil(b"\r\n\r\n"))
            answer = await _read_body(reader, status, fields)
            is_whole = fields.get("connection", "").lower() != "close" and not reader.at_eof()
            return status, answer
        finally:
            if is_whole and len(self._idle) < KEPT_MAX:
                self._idle.append((time.monotonic(), asyncio.get_running_loop(), (reader, writer)))
            else:
                writer.close()

    def _take(self) -> Optional[_Connection]:
        """A connection of this loop that is kept, if there is one that has not ended."""
        while self._idle:
            since, loop, (reader, writer) = self._idle.pop()
            is_of_this = loop is asyncio.get_running_loop()
            if is_of_this and time.monotonic() - since < IDLE_MAX and not _has_ended(reader, writer):
                return reader, writer
            _close(loop, writer)
        return None

    async def _connect(self) -> _Connection:
        return await asyncio.open_connection(
            self.address.host, self.address.port, ssl=self.address.tls, limit=HEAD_MAX
        )

    async def close(self) -> None:
        """Closes the connections that are kept."""
        idle, self._idle = self._idle, []
        for _, loop, (_, writer) in idle:
            _close(loop, writer)


def _close(loop: asyncio.AbstractEventLoop, writer: asyncio.StreamWriter) -> None:
    """Closes a connection in the loop that it belongs to; what a loop has left that has ended goes with the last who knows it."""
    with contextlib.suppress(RuntimeError):
        if loop is asyncio.get_running_loop():
            writer.close()
        else:
            loop.call_soon_threadsafe(writer.close)


def _has_ended(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    return reader.at_eof() or reader.exception() is not None or writer.is_closing()


def _read_head(head: bytes) -> Tuple[int, Dict[str, str]]:
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    fields = dict(line.split(":", 1) for line in lines)
    return int(first.split(" ", 2)[1]), {name.lower(): value.strip() for name, value in fields.items()}


async def _read_body(reader: asyncio.StreamReader, status: int, fields: Mapping[str, str]) -> bytes:
    if status in (204, 304):
        return b""
    if fields.get("transfer-encoding", "").lower() != "chunked":
        length = fields.get("content-length")
        return await (reader.read() if length is None else reader.readexactly(int(length)))
    parts = []
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
        if size == 0:
            return b"".join(parts)


class AsyncDelivery(Received):
    """A message under a lock, as :class:`seriatim.Delivery`."""

    def __init__(self, transport: AsyncTransport, envelope: Mapping[str, Any]) -> None:
        super().__init__(envelope)
        self._transport = transport
        self.delivery: str = envelope["delivery"]
        self.locked_until = parsed(envelope["locked_until"])
        self.lock_seconds = lock_seconds(envelope)

    async def complete(self, state: Any = KEEP, send: Iterable[Send] = ()) -> List[Receipt]:
        """The message is done. The workflow's new state and messages to send are one transaction with that."""
        answer = await self._settle("complete", requests.completion(state, send))
        return [Receipt.read(receipt) for receipt in answer.get("receipts", [])]

    async def abandon(
        self, delay: Optional[Duration] = None, at: Optional[Instant] = None, reason: Optional[str] = None
    ) -> None:
        """It has failed: it is tried again in its place, after the delay, at the instant, or as its queue says."""
        await self._settle("abandon", requests.retry(delay, at, reason))

    async def defer(self, until: Optional[Instant] = None) -> None:
        """It is set aside until an instant, or until it is received by its number; the workflow goes on without it."""
        await self._settle("defer", {} if until is None else {"until": instant(until)})

    async def dead_letter(self, reason: str, description: str = "") -> None:
        """It is moved aside for good."""
        await self._settle("dead_letter", requests.dead_letter(reason, description))

    async def release(self) -> None:
        """It was not begun: it is given back as if it had not been handed out."""
        await self._settle("release", {})

    async def renew(self, timeout: Optional[float] = None) -> None:
        """The lock begins anew. ``timeout`` says how many seconds that may take, with all tries."""
        answer = await self._settle("renew", {}, timeout)
        self.locked_until, self.lock_seconds = parsed(answer["locked_until"]), lock_seconds(answer)

    async def _settle(self, verb: str, fields: Mapping[str, Any], limit: Optional[float] = None) -> Dict[str, Any]:
        return dict(await self._transport.call(requests.settle(self.queue, self.delivery, verb, fields), limit) or {})


class AsyncRun(ReceivedRun):
    """Consecutive messages of one workflow under one lock, as :class:`seriatim.Run`."""

    def __init__(self, transport: AsyncTransport, queue: str, answer: Mapping[str, Any]) -> None:
        super().__init__(queue, answer)
        self._transport = transport

    async def settle(
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
            await self._transport.call(requests.run(self._queue, self._run, "settle", fields))

    async def renew(self) -> None:
        """The lock begins anew."""
        if self._run is not None:
            self._note_lock(await self._transport.call(requests.run(self._queue, self._run, "renew")))


class AsyncQueue:
    """A queue of the daemon, as :class:`seriatim.Queue`."""

    def __init__(self, transport: AsyncTransport, name: str) -> None:
        self._transport = transport
        self.name = name

    async def create(self, **options: Any) -> Dict[str, Any]:
        """Creates the queue, or gives it these options in the place of all it had: see :meth:`seriatim.Queue.create`."""
        return dict(await self._transport.call(requests.put_queue(self.name, options)))

    async def delete(self) -> None:
        """Deletes the queue with everything in it."""
        await self._transport.call(requests.delete_queue(self.name))

    async def view(self) -> Dict[str, Any]:
        """Its counts and options."""
        return dict(await self._look(""))

    async def send(self, body: Union[Body, Message] = b"", **fields: Any) -> Receipt:
        """Sends one message; it is on disk when this returns."""
        message = body if isinstance(body, Message) else Message(body, **fields)
        return (await self.send_batch([message]))[0]

    async def send_batch(self, messages: Iterable[Message]) -> List[Receipt]:
        """Sends up to 1,024 messages: all are accepted, or none. A cluster does so for workflows of one partition only, and refuses
        the others as ``unsupported``: send them one by one."""
        return await self._transport.call(requests.send(self.name, messages))

    async def receive(self, max: int = 1, wait: Duration = 0, state: bool = False, raw: bool = False) -> List[AsyncDelivery]:
        """Up to ``max`` messages of different workflows, each under its lock. Waits for the first, at most a minute.

        ``raw`` asks for bodies of JSON byte for byte: see :attr:`Received.body`.
        """
        answer = await self._transport.call(requests.receive(self.name, max, wait, False, state, raw))
        return [AsyncDelivery(self._transport, envelope) for envelope in answer["deliveries"]]

    async def receive_run(self, max: int = 100, wait: Duration = 0, state: bool = False, raw: bool = False) -> AsyncRun:
        """Up to ``max`` consecutive messages of one workflow, under one lock."""
        answer = await self._transport.call(requests.receive(self.name, max, wait, True, state, raw))
        return AsyncRun(self._transport, self.name, answer)

    async def receive_deferred(self, numbers: Iterable[int], state: bool = False, raw: bool = False) -> List[AsyncDelivery]:
        """Messages that were set aside, by their numbers: all, or none."""
        answer = await self._transport.call(requests.receive_deferred(self.name, list(numbers), state, raw))
        return [AsyncDelivery(self._transport, envelope) for envelope in answer["deliveries"]]

    async def complete(self, deliveries: Iterable[AsyncDelivery]) -> Dict[str, Any]:
        """Completes many deliveries with one request; what became of each stands in ``results``."""
        ids = [delivery.delivery for delivery in deliveries]
        return dict(await self._transport.call(requests.complete_many(self.name, ids)))

    async def cancel(self, number: int, void: bool = False) -> None:
        """Cancels a scheduled message. Its place is free again, or, with ``void``, settled."""
        await self._transport.call(requests.cancel(self.name, number, void))

    async def reschedule(self, number: int, at: Instant) -> None:
        """Moves a scheduled message to another instant."""
        await self._transport.call(requests.reschedule(self.name, number, at))

    def workflow(self, id: str) -> "AsyncWorkflow":
        """A workflow, to look at it and to operate on it."""
        return AsyncWorkflow(self._transport, self.name, id)

    async def operate(self, workflow: str, verb: str, **fields: Any) -> Dict[str, Any]:
        """What an operator does to a workflow: ``hold``, ``resume``, ``retry``, ``skip``, ``void``, ``purge``."""
        return dict(await self._transport.call(requests.operate(self.name, workflow, verb, fields)))

    async def messages(self, limit: int = 100, **filters: Any) -> Dict[str, Any]:
        """A page of its messages, of any status."""
        return dict(await self._look("/messages", limit=limit, **filters))

    async def dead_letters(self, limit: int = 100, **filters: Any) -> Dict[str, Any]:
        """A page of its dead letters."""
        return dict(await self._look("/dead_letters", limit=limit, **filters))

    async def redrive(self, number: int, position: Optional[int] = None) -> Dict[str, Any]:
        """Puts a dead letter back where it was, or at another position."""
        return dict(await self._transport.call(requests.redrive(self.name, number, position)))

    async def redrive_many(self, **which: Any) -> Dict[str, Any]:
        """Puts dead letters back: ``all=True``, ``workflow_id=`` or ``dead_letter_reason=``."""
        return dict(await self._transport.call(requests.redrive_many(self.name, which)))

    async def blocked(self) -> List[Dict[str, Any]]:
        """Its workflows that do not go on: why, since when, and what comes next."""
        return await _blocked(self._transport, self.name)

    async def _look(self, rest: str, **query: Any) -> Any:
        return await self._transport.call(requests.get(requests.queue_path(self.name, rest), **query))


async def _blocked(transport: AsyncTransport, queue: Optional[str] = None) -> List[Dict[str, Any]]:
    blocked = requests.Blocked(queue)
    while blocked.ask is not None:
        blocked.add(await transport.call(blocked.ask))
    return blocked.rows


class AsyncWorkflow:
    """A workflow of a queue, as :class:`seriatim.Workflow`."""

    def __init__(self, transport: AsyncTransport, queue: str, id: str) -> None:
        self._transport = transport
        self.queue = queue
        self.id = id

    async def view(self) -> Dict[str, Any]:
        """What it does, or why it does nothing."""
        path = requests.queue_path(self.queue, "/workflow")
        return dict(await self._transport.call(requests.get(path, id=self.id)))

    async def state(self) -> Any:
        """Its state: as JSON has it, else as bytes; ``None`` when there is none."""
        path = requests.queue_path(self.queue, "/workflow/state")
        try:
            return await self._transport.call(requests.state(path, self.id))
        except NotFound as refused:
            if refused.code == "state_not_found":
                return None
            raise

    async def hold(self, reason: Optional[str] = None, dry_run: bool = False) -> Dict[str, Any]:
        """Offers nothing of it until it is resumed."""
        return await self._operate("hold", reason=reason, dry_run=dry_run)

    async def resume(
        self, redrive: bool = False, dry_run: bool = False, reason: Optional[str] = None, cause: Optional[str] = None
    ) -> Dict[str, Any]:
        """Lets it go on; with ``redrive`` its dead letters are put back first. ``cause`` lifts only that of its hold, as ``"gap"``."""
        return await self._operate("resume", redrive=redrive or None, dry_run=dry_run, reason=reason, cause=cause)

    async def retry(self, dry_run: bool = False, reason: Optional[str] = None) -> Dict[str, Any]:
        """Tries the failed message at its head now."""
        return await self._operate("retry", dry_run=dry_run, reason=reason)

    async def skip(self, reason: str, dry_run: bool = False, sequence_number: Optional[int] = None) -> Dict[str, Any]:
        """Makes the message at its head a dead letter, and goes on; with ``sequence_number`` only if it is that one."""
        return await self._operate("skip", reason=reason, dry_run=dry_run, sequence_number=sequence_number)

    async def void(self, first: int, last: Optional[int] = None, *, reason: str, dry_run: bool = False) -> Dict[str, Any]:
        """Waits no more for missing positions."""
        return await self._operate("void", **{"from": first, "to": last}, reason=reason, dry_run=dry_run)

    async def skip_gap(self, reason: str, dry_run: bool = False) -> Dict[str, Any]:
        """Waits no more for what is missing before the lowest waiting message."""
        return await self._operate("skip_gap", reason=reason, dry_run=dry_run)

    async def release_lock(self, dry_run: bool = False, reason: Optional[str] = None) -> Dict[str, Any]:
        """Takes it from its holder."""
        return await self._operate("release_lock", dry_run=dry_run, reason=reason)

    async def purge(self, reason: str, dry_run: bool = False) -> Dict[str, Any]:
        """Removes its messages for good."""
        return await self._operate("purge", reason=reason, dry_run=dry_run)

    async def _operate(self, verb: str, **fields: Any) -> Dict[str, Any]:
        fields["dry_run"] = fields.get("dry_run") or None
        return dict(await self._transport.call(requests.operate(self.queue, self.id, verb, fields)))


class AsyncClient:
    """A daemon, asked over HTTP from asyncio; as :class:`seriatim.Client`. ``async with`` closes its connections."""

    def __init__(
        self,
        url: Optional[str] = None,
        key: Optional[str] = None,
        *,
        timeout: float = 30.0,
        retry_for: float = 10.0,
        tls: Optional[ssl.SSLContext] = None,
    ) -> None:
        self._transport = AsyncTransport(Address.of(url, key, tls), timeout, retry_for)

    @property
    def url(self) -> str:
        """Where the daemon is."""
        return self._transport.address.url

    def queue(self, name: str) -> AsyncQueue:
        """A queue by its name."""
        return AsyncQueue(self._transport, name)

    async def queues(self) -> List[Dict[str, Any]]:
        """The first 1,000 queues, in order of name."""
        return list((await self._transport.call(requests.get("/v1/queues", limit=requests.PAGE_MAX)))["queues"])

    async def status(self) -> Dict[str, Any]:
        """How the daemon is."""
        return dict(await self._transport.call(requests.get("/v1/status")))

    async def blocked(self) -> List[Dict[str, Any]]:
        """Every workflow that does not go on: why, since when, and what comes next."""
        return await _blocked(self._transport)

    async def close(self) -> None:
        """Closes the connections."""
        await self._transport.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()
