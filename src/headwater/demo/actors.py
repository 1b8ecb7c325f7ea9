"""What the processes of the demo do: producers write orders, members of groups read them.

They report through shared memory, which outlives a ``kill -9``. Invariant: an order is counted as
written after the log has acknowledged it, and as read before it is committed, so that the check
at the end cannot be kinder than the log.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.context import SpawnContext
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import headwater
from headwater.errors import Fenced

TOPIC = "orders"
SCHEMA = "shop STRING, number BIGINT, customer BIGINT, item STRING, at TIMESTAMP"
PARTITIONS = 4
SHOPS = ("berlin", "lisbon", "oslo")
RATE = 10_000
"""Orders per second of each shop."""
ITEMS = ("tea", "coffee", "cocoa", "water")
TICK = 0.05
_PARENT = os.getppid()


@dataclass(frozen=True)
class Role:
    """A member of a group; ``pace`` is the most orders per second it can handle."""

    name: str
    group: str
    pace: int | None = None


ROLES = (
    Role("billing-1", "billing"),
    Role("billing-2", "billing"),
    Role("search-1", "search", pace=int(0.7 * RATE * len(SHOPS))),
)
GROUPS = tuple(dict.fromkeys(role.group for role in ROLES))


@dataclass(frozen=True)
class Board:
    """Shared memory, one writer per cell."""

    flags: Any  # [0] producers go on, [1] members go on
    ready: Any  # per actor: shops, then roles
    written: Any  # per shop
    read: Any  # per role
    owned: Any  # per role: a bit per partition
    seen: Any  # per group, shop and order: how often it was read
    capacity: int
    """Orders of one shop, at most."""

    @classmethod
    def make(cls, context: SpawnContext, capacity: int) -> Board:
        """Reserve room for so many orders of each shop."""
        roles, shops = len(ROLES), len(SHOPS)
        board = cls(
            flags=context.RawArray("q", 2),
            ready=context.RawArray("q", shops + roles),
            written=context.RawArray("q", shops),
            read=context.RawArray("q", roles),
            owned=context.RawArray("q", roles),
            seen=context.RawArray("B", len(GROUPS) * shops * capacity),
            capacity=capacity,
        )
        board.flags[:] = [1, 1]
        return board

    def times_seen(self) -> npt.NDArray[np.uint8]:
        """Return how often each order was read, by group, shop and number."""
        return np.frombuffer(self.seen, np.uint8).reshape(len(GROUPS), len(SHOPS), self.capacity)


def produce(url: str, board: Board, shop: int) -> None:
    """Write orders at an even pace, until told to stop or out of room."""
    _leave_interrupts_to_parent()
    with headwater.open(url) as log, log.producer(TOPIC, SHOPS[shop]) as out:
        _ready(board, shop)
        started, sent = time.monotonic(), 0
        while board.flags[0] and _has_parent():
            due = min(board.capacity, int((time.monotonic() - started) * RATE))
            for number in range(sent, due):
                out.send(_order(shop, number))
            out.flush()
            board.written[shop] = sent = due
            time.sleep(TICK)


def consume(url: str, board: Board, index: int) -> None:
    """Read and commit, batch by batch, until told to stop."""
    role = ROLES[index]
    _leave_interrupts_to_parent()
    with headwater.open(url) as log, log.consumer(TOPIC, role.group) as member:
        member.poll(0)
        _ready(board, len(SHOPS) + index)
        while board.flags[1] and _has_parent():
            batch = member.poll(0.1)
            board.owned[index] = sum(1 << partition for partition in member.assignment())
            if batch is not None:
                _handle(batch, board, index)
                try:
                    member.commit()
                except Fenced:
                    continue  # another member has the partition now, and reads it again


def _handle(batch: pa.RecordBatch, board: Board, index: int) -> None:
    """Count each order of a batch, no faster than the member's pace."""
    role = ROLES[index]
    seen = board.times_seen()[GROUPS.index(role.group)]
    step = int(role.pace * TICK) if role.pace else len(batch)
    for at in range(0, len(batch), step):
        part = batch.slice(at, step)
        shop = part.column("shop").dictionary_encode()
        codes = np.array([SHOPS.index(name) for name in shop.dictionary.to_pylist()])
        numbers = part.column("number").to_numpy()
        np.add.at(seen, (codes[shop.indices.to_numpy()], numbers), 1)
        board.read[index] += len(part)
        if role.pace:
            time.sleep(len(part) / role.pace)


def _order(shop: int, number: int) -> dict[str, Any]:
    return {
        "shop": SHOPS[shop],
        "number": number,
        "customer": number * 7919 % 1009,
        "item": ITEMS[number % len(ITEMS)],
        "at": datetime.now(UTC),
    }


def _ready(board: Board, actor: int) -> None:
    """Wait for the others, so that all begin together."""
    board.ready[actor] = 1
    while not all(board.ready) and _has_parent():
        time.sleep(0.01)


def _has_parent() -> bool:
    """Tell whether the demo still runs; after a kill -9 of it the actors must not stay behind."""
    return os.getppid() == _PARENT


def _leave_interrupts_to_parent() -> None:
    """Ctrl-C reaches every process of a terminal; only the parent decides what it means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
