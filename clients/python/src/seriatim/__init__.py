"""Messages of one workflow, one at a time, in order, even when they arrive shuffled, fail, or a process dies.

A :class:`Client` sends, receives and operates over the HTTP API of a seriatim daemon; :class:`App` runs handlers.
"""

from seriatim.aio import AsyncClient, AsyncDelivery, AsyncQueue, AsyncRun, AsyncWorkflow
from seriatim.app import App, Context
from seriatim.client import Client, Delivery, Queue, Run, Workflow
from seriatim.errors import (
    AlreadySettled,
    LockLost,
    NotFound,
    PlaceTaken,
    QueueFull,
    Refused,
    SeriatimError,
    Unauthorized,
    Unavailable,
    Unreachable,
)
from seriatim.message import Message, Receipt, Received
from seriatim.outcome import DeadLetter, Defer, Outcome, Retry

__all__ = [
    "AlreadySettled",
    "App",
    "AsyncClient",
    "AsyncDelivery",
    "AsyncQueue",
    "AsyncRun",
    "AsyncWorkflow",
    "Client",
    "Context",
    "DeadLetter",
    "Defer",
    "Delivery",
    "LockLost",
    "Message",
    "NotFound",
    "Outcome",
    "PlaceTaken",
    "Queue",
    "QueueFull",
    "Receipt",
    "Received",
    "Refused",
    "Retry",
    "Run",
    "SeriatimError",
    "Unauthorized",
    "Unavailable",
    "Unreachable",
    "Workflow",
]
