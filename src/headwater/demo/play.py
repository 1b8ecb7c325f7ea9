"""Starts the demo's processes, watches them, kills one, and checks at the end what was read.

Invariant: leaving the ``with`` block, however that happens, ends every process and removes the
temporary log.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Self

import numpy as np

import headwater
from headwater.demo import actors
from headwater.demo.actors import GROUPS, PARTITIONS, ROLES, SHOPS, TOPIC, Board
from headwater.errors import HeadwaterError, LogUnavailable
from headwater.log import Lag

START_SECONDS = 60.0
REMOVE_SECONDS = 5.0


@dataclass(frozen=True)
class Scene:
    """Everything there is to see at one moment."""

    at: float
    written: tuple[int, ...]
    read: tuple[int, ...]
    alive: tuple[bool, ...]
    owned: tuple[tuple[int, ...], ...]
    lag: dict[str, list[Lag]]

    def group_read(self, group: str) -> int:
        """Return how many orders the members of a group have read."""
        return sum(n for n, role in zip(self.read, ROLES, strict=True) if role.group == group)


@dataclass(frozen=True)
class Verdict:
    """What a group has read, against what was written."""

    group: str
    written: int
    missing: int
    again: int
    """Reads of an order that the group had read before: at least once, not exactly."""


class Play:
    """The processes, their log in a temporary directory, and their shared memory."""

    def __init__(self, writing_seconds: float):
        context = multiprocessing.get_context("spawn")
        self._directory = tempfile.mkdtemp(prefix="headwater-demo-")
        url = f"file:{self._directory}/data"
        self._board = Board.make(context, int(writing_seconds * actors.RATE))
        self.log = headwater.open(url)
        self.log.create_topic(TOPIC, actors.SCHEMA, key="customer", event_time="at", partitions=PARTITIONS)
        self._members: list[BaseProcess] = [
            context.Process(target=actors.consume, args=(url, self._board, index), daemon=True)
            for index in range(len(ROLES))
        ]
        self._producers: list[BaseProcess] = [
            context.Process(target=actors.produce, args=(url, self._board, shop), daemon=True)
            for shop in range(len(SHOPS))
        ]

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:  # Ctrl-C while they start must not leave any of them
            self._end()
            raise
        return self

    def _start(self) -> None:
        processes = (*self._members, *self._producers)
        for process in processes:
            process.start()
        deadline = time.monotonic() + START_SECONDS
        while not all(self._board.ready):
            time.sleep(0.02)
            if time.monotonic() > deadline or any(process.exitcode for process in processes):
                raise LogUnavailable("the processes of the demo did not start")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def look(self) -> Scene:
        """Return what there is to see now."""
        board = self._board
        return Scene(
            at=time.monotonic(),
            written=tuple(board.written),
            read=tuple(board.read),
            alive=tuple(member.is_alive() for member in self._members),
            owned=tuple(tuple(p for p in range(PARTITIONS) if mask >> p & 1) for mask in board.owned),
            lag={group: self._lag(group) for group in GROUPS},
        )

    def kill(self, member: int) -> None:
        """End a member without a chance to say so: ``kill -9``."""
        self._members[member].kill()
        self._members[member].join()

    def stop_writing(self) -> None:
        """Let the producers flush and end."""
        self._board.flags[0] = 0
        for producer in self._producers:
            producer.join()

    def verdicts(self) -> list[Verdict]:
        """Compare what each group has read with what was written."""
        written = np.array(self._board.written)
        expected = np.arange(self._board.capacity)[None, :] < written[:, None]
        return [
            Verdict(
                group,
                int(written.sum()),
                int(np.count_nonzero(expected & (seen == 0))),
                int(np.maximum(seen.astype(np.int64) - 1, 0).sum()),
            )
            for group, seen in zip(GROUPS, self._board.times_seen(), strict=True)
        ]

    def _lag(self, group: str) -> list[Lag]:
        try:
            return self.log.lag(group)
        except HeadwaterError:
            return []  # the group's first member is about to join

    def _end(self) -> None:
        self._board.flags[:] = [0, 0]
        running = [process for process in (*self._members, *self._producers) if process.pid]
        for process in running:
            process.join(1)
            process.kill()
            process.join()
        try:
            self.log.close()
        finally:
            _remove(self._directory)


def _remove(directory: str) -> None:
    """Remove a directory, again where something was still being made in it meanwhile.

    Ctrl-C may come between the start of a process and its being known; it ends by itself then.
    """
    deadline = time.monotonic() + REMOVE_SECONDS
    while os.path.exists(directory) and time.monotonic() < deadline:
        shutil.rmtree(directory, ignore_errors=True)
        time.sleep(0.05)
