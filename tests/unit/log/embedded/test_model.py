"""The embedded log against a simple model, with crashes at any byte of any write.

The model is a list of rows per partition. A crash is an exception that no handler expects, raised
from the write that exceeds a budget of bytes, after the part that fits has been written; from then
on every write of the "process" fails, and the log is opened anew.
"""

from __future__ import annotations

import builtins
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.maintenance import Maintenance
from headwater.log.embedded.partition import writer
from headwater.log.producer import Producer
from headwater.values import keys
from soaking import examples

PARTITIONS = 2
KEYS = [f"k{i}" for i in range(6)]


class Crash(BaseException):
    """The process is gone."""


class Budget:
    """How many bytes may still be written; a rename or a sync counts as one."""

    def __init__(self, left: int):
        self.left = left
        self.crashed = False

    def spend(self, wanted: int) -> int:
        if self.crashed or wanted > self.left:
            granted, self.left, self.crashed = max(0, self.left), 0, True
            return granted
        self.left -= wanted
        return wanted


class File:
    """A file opened for writing, under a budget."""

    def __init__(self, file: Any, budget: Budget):
        self._file, self._budget = file, budget

    def write(self, data: Any) -> int:
        granted = self._budget.spend(len(data))
        self._file.write(bytes(memoryview(data)[:granted]))
        if self._budget.crashed:
            self._file.flush()
            raise Crash
        return granted

    def __enter__(self) -> File:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def under(budget: Budget, patch: pytest.MonkeyPatch) -> None:
    """Let every way of changing a file count."""
    pwrite, real_open = os.pwrite, builtins.open

    def counted_pwritev(fd: int, buffers: list[Any], at: int) -> int:
        return counted_pwrite(fd, b"".join(bytes(b) for b in buffers), at)

    def counted_pwrite(fd: int, data: bytes, at: int) -> int:
        granted = budget.spend(len(data))
        pwrite(fd, data[:granted], at)
        if budget.crashed:
            raise Crash
        return granted

    def counted_open(path: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
        file = real_open(path, mode, *rest, **more)
        return File(file, budget) if set(mode) & set("wa+") and "b" in mode else file

    patch.setattr(os, "pwrite", counted_pwrite)
    patch.setattr(os, "pwritev", counted_pwritev)
    patch.setattr(builtins, "open", counted_open)
    for name in ("replace", "ftruncate", "fdatasync", "fsync", "rename"):
        patch.setattr(os, name, _counted(getattr(os, name), budget))
    patch.setattr(Path, "unlink", _counted(Path.unlink, budget))


def _counted(function: Any, budget: Budget) -> Any:
    def call(*arguments: Any, **more: Any) -> Any:
        if budget.spend(1) < 1:
            raise Crash
        return function(*arguments, **more)

    return call


class LogMachine(RuleBasedStateMachine):
    """Appends, crashes, compaction, retention and reads, in any order."""

    @initialize(kind=st.sampled_from(["plain", "retention", "archive", "compact"]))
    def start(self, kind: str) -> None:
        self.kind = kind
        self.root = Path(tempfile.mkdtemp(prefix="headwater-model-"))
        self.stored: list[list[tuple[str, int, bool]]] = [[] for _ in range(PARTITIONS)]
        self.counter = 0
        self.sequence = {"a": 0, "b": 0}
        self.patched = pytest.MonkeyPatch()
        self.patched.setattr(writer, "SNAPSHOT_FRAMES", 3)
        self.patched.setattr(Producer, "_rouse", lambda *_: None)  # one thread, one order
        self.patched.setattr(Maintenance, "begin", lambda care, stored: None)  # only when asked
        self.log = self._open()
        settings: dict[str, Any] = {
            "plain": {},
            "retention": {"retention_bytes": 6000},
            "archive": {"retention_bytes": 6000, "archive": "old"},
            "compact": {"cleanup": "compact", "retention": "1 microsecond"},
        }[kind]
        self.log.create_topic("t", "k STRING, n BIGINT", key="k", partitions=PARTITIONS, **settings)

    def teardown(self) -> None:
        if hasattr(self, "root"):
            self.patched.undo()
            self.log.close()
            shutil.rmtree(self.root)

    def _open(self) -> EmbeddedLog:
        return EmbeddedLog(self.root, segment_bytes=2500)

    # Doing

    @rule(chosen=st.lists(st.sampled_from(KEYS), min_size=1, max_size=12), who=st.sampled_from("ab"))
    def append(self, chosen: list[str], who: str) -> None:
        batch = self._batch(chosen)
        self._send(who, batch)
        self._acknowledged(who, batch)

    @rule(
        chosen=st.lists(st.sampled_from(KEYS), min_size=1, max_size=12),
        who=st.sampled_from("ab"),
        budget=st.integers(0, 3000),
        power=st.booleans(),
    )
    def crash_in_append_and_send_again(self, chosen: list[str], who: str, budget: int, power: bool) -> None:
        batch = self._batch(chosen)
        crashed = self._crashing(budget, lambda: self._send(who, batch))
        if crashed and power:
            self._lose_power()
        if crashed:
            self._whole_or_nothing(batch)
            self._send(who, batch)
        self._acknowledged(who, batch)

    @precondition(lambda self: self.kind == "compact")
    @rule(key=st.sampled_from(KEYS))
    def delete(self, key: str) -> None:
        with self.log.producer("t", id="a") as producer:
            producer.delete(key, sequence=self.sequence["a"])
        self._place([(key, -1, True)])
        self.sequence["a"] += 1

    @rule()
    def care(self) -> None:
        self.log.compact("t")

    @rule(budget=st.integers(0, 4000), power=st.booleans())
    def crash_in_care(self, budget: int, power: bool) -> None:
        if self._crashing(budget, lambda: self.log.compact("t")) and power:
            self._lose_power()

    @rule()
    def open_again(self) -> None:
        self.log.close()
        self.log = self._open()

    @rule(garbage=st.binary(min_size=1, max_size=200), number=st.integers(0, PARTITIONS - 1))
    def a_dead_process_leaves_garbage(self, garbage: bytes, number: int) -> None:
        newest = sorted((self.root / "topics/t" / str(number)).glob("*.log"))
        if newest and "-" not in newest[-1].name:
            with open(newest[-1], "ab") as file:
                file.write(garbage)

    # Checking

    @rule(data=st.data(), number=st.integers(0, PARTITIONS - 1))
    def reading_a_range(self, data: st.DataObject, number: int) -> None:
        rows = self._rows(number)
        end = len(self.stored[number])
        first = self.log.describe("t").partitions[number].earliest
        start = data.draw(st.integers(first, end))
        stop = data.draw(st.integers(start, end + 3))
        expected = [(o, r) for o, r in rows if start <= o < stop]
        assert self._rows(number, start, stop) == expected

    @invariant()
    def what_is_read_is_what_was_stored(self) -> None:
        if not hasattr(self, "log"):
            return
        for number, stored in enumerate(self.stored):
            rows = self._rows(number)
            assert all(stored[offset] == row for offset, row in rows)
            offsets = [offset for offset, _ in rows]
            assert offsets == sorted(set(offsets))
            if self.kind in ("plain", "archive"):
                assert len(rows) == len(stored)
            elif self.kind == "retention":
                earliest = self.log.describe("t").partitions[number].earliest
                assert offsets == list(range(earliest, len(stored)))
            else:
                newest = {row[0]: offset for offset, row in enumerate(stored)}
                assert {o for o in newest.values() if not stored[o][2]} <= set(offsets)
            assert self.log.resolve("t", "latest").offsets[number] == len(stored)
        assert self.log.verify("t").findings == ()

    # Inside

    def _rows(self, number: int, start: Any = "earliest", end: Any = "latest") -> list[Any]:
        read = self.log.read("t", number, start, end, meta=True)
        found = [row for batch in read for row in batch.to_pylist()]
        return [(r["_offset"], (r["k"], -1 if r["_deleted"] else r["n"], r["_deleted"])) for r in found]

    def _batch(self, chosen: list[str]) -> list[dict[str, Any]]:
        batch = [{"k": key, "n": self.counter + i} for i, key in enumerate(chosen)]
        self.counter += len(chosen)
        return batch

    def _send(self, who: str, batch: list[dict[str, Any]]) -> None:
        with self.log.producer("t", id=who) as producer:
            producer.send_batch(batch, sequence=self.sequence[who])

    def _acknowledged(self, who: str, batch: list[dict[str, Any]]) -> None:
        self._place([(row["k"], row["n"], False) for row in batch])
        self.sequence[who] += len(batch)

    def _place(self, rows: list[tuple[str, int, bool]]) -> None:
        where = keys.partitions([pa.array([row[0] for row in rows])], PARTITIONS)
        for row, number in zip(rows, where, strict=True):
            self.stored[number].append(row)

    def _crashing(self, budget: int, action: Any) -> bool:
        spent = Budget(budget)
        with pytest.MonkeyPatch.context() as patch:
            under(spent, patch)
            try:
                action()
            except Crash:
                spent.crashed = True
        if spent.crashed:
            self.log.close()
            self.log = self._open()
        return spent.crashed

    def _lose_power(self) -> None:
        """The head was never synced: after a power loss it may be an older one, or gone."""
        for number in range(PARTITIONS):
            (self.root / "topics/t" / str(number) / "head").write_bytes(b"")
        self.log.close()
        self.log = self._open()

    def _whole_or_nothing(self, batch: list[dict[str, Any]]) -> None:
        """In each partition a crashed batch is there whole or not at all, and so can be sent again."""
        where = keys.partitions([pa.array([row["k"] for row in batch])], PARTITIONS)
        for number in range(PARTITIONS):
            mine = [row["n"] for row, at in zip(batch, where, strict=True) if at == number]
            read = self.log.read("t", number, len(self.stored[number]), meta=True)
            found = [row["n"] for b in read for row in b.to_pylist()]
            assert found in ([], mine)


LogMachine.TestCase.settings = examples(60, stateful_step_count=25)
TestLogMachine = LogMachine.TestCase
