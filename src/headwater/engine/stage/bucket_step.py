"""One bucket, one micro-batch: its new rows through the operator, and what time asks for.

Rows are judged by the clock from before the micro-batch, so none is late because of one that was
read with it. Then, if time has come to where the bucket wants to be woken, it is. The same code
runs in Spark's workers and, for a micro-batch of few rows, in the driver.

Invariant: nothing that is stored is changed; a step that is repeated is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headwater.engine.exchange import blobs, routing
from headwater.engine.files.home_files import HomeFiles
from headwater.engine.stage.key_sample import key_sample
from headwater.engine.state.bucket import Bucket, BucketMeta
from headwater.engine.state.chunk_files import Pack
from headwater.engine.state.run_files import StateRunFiles
from headwater.operators.event_time import NEVER
from headwater.operators.operator import Operator, Step


@dataclass(frozen=True)
class StepContext:
    """What all buckets of a node have in common in a micro-batch."""

    node: str
    """Its version's home: states of other nodes and versions are told apart by it."""
    operator: Operator[Any]
    schema: pa.Schema
    """Of the rows that go in."""
    files: HomeFiles
    """Where the states are; it travels to the workers."""
    before: int = NEVER
    """The clock from before the micro-batch."""
    now: int = NEVER
    """The clock after it."""
    count: int = 1
    """Over how many buckets the keys are spread."""
    buckets: Mapping[int, BucketMeta] = field(default_factory=dict)

    def due(self) -> list[int]:
        """Return the buckets that want to be woken, though no rows may come for them."""
        return [number for number, meta in self.buckets.items() if self._is_due(meta.next_timer)]

    def step(self, rows: Mapping[int, pa.Table]) -> list[StepResult]:
        """Let buckets take their new rows, and store what they learn: in one file, where that is small."""
        pack = Pack(self.files)
        done = [self._step_into(pack, number, rows[number]) for number in sorted(rows)]
        pack.write()
        return done

    def _step_into(self, pack: Pack, number: int, rows: pa.Table) -> StepResult:
        """Let a bucket take its new rows; what it learns is stored when the pack is written."""
        meta = self.buckets.get(number, BucketMeta())
        files = StateRunFiles(self.files, pack)
        bucket = Bucket(self.operator, self.schema, (self.node, number), files)
        loaded = bucket.load(meta)
        steps = list(self._steps(loaded.state, rows))
        after = bucket.store(meta, loaded.state)
        return StepResult(
            number,
            rows.num_rows,
            steps,
            after,
            hit=loaded.hit,
            loaded=bool(meta.save),
            read=loaded.bytes_read,
            held=bucket.held,
            keys=key_sample(rows, self.operator.key),
        )

    def _steps(self, state: Any, rows: pa.Table) -> Iterator[Step]:
        if rows.num_rows:
            yield self.operator.step(state, rows, self.before)
        if self._is_due(self.operator.next_timer(state)):
            yield self.operator.step(state, self.schema.empty_table(), self.now)

    def _is_due(self, next_timer: int | None) -> bool:
        return next_timer is not None and next_timer <= self.now


@dataclass(frozen=True)
class StepResult:
    """What came of a bucket's step."""

    bucket: int
    rows: int
    """Rows that went in."""
    steps: list[Step]
    meta: BucketMeta
    hit: bool
    loaded: bool
    read: int
    held: int
    """The bytes that its state has in memory."""
    keys: dict[str, int]
    """How often the most frequent keys are among some of the rows that went in."""

    @property
    def out(self) -> list[pa.Table]:
        """The rows for those downstream."""
        return [step.out for step in self.steps if step.out.num_rows]

    @property
    def late(self) -> list[pa.Table]:
        """The rows that came too late."""
        return [step.late for step in self.steps if step.late is not None and step.late.num_rows]

    @property
    def dead(self) -> list[pa.Table]:
        """The rows on which code of the user's has failed, with what it said."""
        return [step.dead for step in self.steps if step.dead is not None and step.dead.num_rows]

    @property
    def duplicates(self) -> int:
        """How many rows were left out because they were known."""
        return sum(step.duplicates for step in self.steps)


def step_in_driver(work: StepContext, rows: pa.Table) -> list[StepResult]:
    """Let all buckets take their rows, in this process."""
    parts = dict(blobs.split(rows, routing.buckets(rows, work.operator.key, work.count)))
    return work.step({**dict.fromkeys(work.due(), work.schema.empty_table()), **parts})
