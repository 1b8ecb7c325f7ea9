"""The files of a pipeline's home, without Spark, through power losses at any step: what counts is there.

A micro-batch here does what that of a query does, in the same order: Spark's files are written and not
synced, the state is a count of rows in chunks, and the sink is a place that loses nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults.synced import sitecustomize as synced
from headwater.engine.batch import query_layout
from headwater.engine.files.local_files import LocalFiles
from headwater.engine.home import checkpoint, node_progress
from headwater.engine.home.checkpoint import Input, InputProgress
from headwater.engine.home.checkpoint_recovery import recover
from headwater.engine.home.versions import Version
from headwater.engine.state.bucket import BucketMeta
from headwater.engine.state.chunk_files import Files, Pack
from headwater.engine.state.state_manifests import StateManifests
from headwater.log import Position
from headwater.operators.memory.operator_memory import StoredMemory
from headwater.operators.memory.sorted_runs import StoredRuns
from power_loss import Disk
from soaking import examples


class Node:
    """A node that counts the records of a topic, and commits the count with each micro-batch."""

    def __init__(self, home: Path, sink: dict[int, tuple[int, int]]):
        self.sink, self._query, self._home = sink, home / "queries" / "own-1", home / "nodes" / "n" / "v1"
        query_layout.attach(Version(1, self._home), self._query)
        checkpoint.write_start(self._query, {"t": Position("t", {0: 0})})
        recover(self._query)
        self._states = StateManifests(LocalFiles(self._home / "state"))
        self._states.begin()
        self._done = node_progress.read(self._home)
        _check_readable(self._query)
        assert self._done.batch <= checkpoint.last_batch(self._query)
        assert max(sink, default=-1) <= checkpoint.last_batch(self._query)
        assert self._done.batch <= max(sink, default=-1)

    def steps(self, records: int) -> Iterator[None]:
        """Do a micro-batch of some records, the last one again if it was not done; pause after each step."""
        number = checkpoint.last_done(self._query) + 1
        last = checkpoint.last_batch(self._query)
        if last < number:
            yield from self._plan(number, records)
        else:  # where several were done and not noted, Spark repeats the last
            number = last
        checkpoint.sync_offsets(self._query, number, first=True)
        yield
        before, after = (self._end(each) for each in (number - 1, number))
        buckets = self._states.before(number)
        assert self._count(buckets) == before
        yield from self._step(number, buckets, after - before)
        assert self.sink.get(number, (before, after)) == (before, after), "it was committed as it is now"
        self.sink[number] = (before, after)
        yield
        self._done = self._done.after(number, InputProgress({"t": Input(Position("t", {0: after}), after)}))
        node_progress.write(self._query, {self._home: self._done})
        yield
        _write(self._query / "commits" / str(number), 'v1\n{"nextBatchWatermarkMs":0}')
        yield

    def _plan(self, number: int, records: int) -> Iterator[None]:
        told = {"topic": "t", "id": "8b1f", "timed": True, "offsets": {"0": self._end(number - 1) + records}}
        told |= {
            "clock": 0,
            "claims": {},
            "heard": 0,
            "silent": False,
            "furthest": 0,
            "lateness": 0,
            "silence": 0,
        }
        _write(checkpoint.offsets_file(self._query, number), "\n".join(["v1", "{}", json.dumps({"t": told})]))
        yield

    def _step(self, number: int, buckets: dict[int, BucketMeta], records: int) -> Iterator[None]:
        packed = Pack(self._states.files)
        chunk = (packed if number % 2 else Files(self._states.files)).put(str(records).encode())
        packed.write()
        yield
        kept = buckets.get(0, BucketMeta()).stored
        learnt = StoredMemory({"rows": StoredRuns((*kept, chunk))})
        self._states.commit(number, {0: BucketMeta(learnt)})
        yield

    def _end(self, batch: int) -> int:
        return checkpoint.input_progress(self._query, batch).inputs["t"].position.offsets[0]

    def _count(self, buckets: dict[int, BucketMeta]) -> int:
        chunks = [chunk for meta in buckets.values() for chunk in meta.stored]
        return sum(int(Files(self._states.files).get(chunk)) for chunk in chunks)


def _check_readable(query: Path) -> None:
    """Read what Spark reads when it starts."""
    json.loads((query / "metadata").read_text())
    done, planned = checkpoint.last_done(query), checkpoint.last_batch(query)
    if done >= 0:
        json.loads((query / "commits" / str(done)).read_text().splitlines()[1])
    checkpoint.input_progress(query, planned)


def _write(path: Path, text: str) -> None:
    """Write a file as Spark does: it has its name when it is whole, and nothing is synced."""
    path.parent.mkdir(exist_ok=True)
    draft = path.with_name(f".{path.name}.tmp")
    draft.write_text(text)
    os.rename(draft, path)


RUNS = st.lists(st.tuples(st.integers(0, 16), st.integers(0, 1 << 30)), min_size=1, max_size=8)
"""After how many steps the power goes, and how chance has it then."""
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


@given(RUNS)
@examples(100)
def test_nothing_that_counts_is_lost_wherever_the_power_goes(runs: list[tuple[int, int]]) -> None:
    sink: dict[int, tuple[int, int]] = {}
    with TemporaryDirectory(dir=MEMORY) as root:
        disk = Disk(Path(root) / "0", ["home"], "views.db")
        for number, (steps, seed) in enumerate(runs):
            with pytest.MonkeyPatch.context() as watching:
                for name, value in disk.environment().items():
                    watching.setenv(name, value)
                watching.setattr(os, "fsync", synced.noting(lambda fd: None))  # noted is as good as synced
                _run(Node(disk.root / "home", sink), steps)
            disk = disk.after_loss(Path(root) / str(number + 1), seed)
        node = Node(disk.root / "home", sink)
        _run(node, 30)
    ends = [sink[number] for number in sorted(sink)]
    assert sorted(sink) == list(range(len(sink)))
    assert all(first[1] == second[0] for first, second in pairwise(ends))


def _run(node: Node, steps: int) -> None:
    """Do micro-batches until so many steps are over."""
    left = iter(range(steps))
    while True:
        for _ in node.steps(records=7):
            if next(left, None) is None:
                return
