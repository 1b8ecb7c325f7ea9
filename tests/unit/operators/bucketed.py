"""An operator run over buckets as the engine runs it, their number changed between steps."""

from __future__ import annotations

import tempfile
import uuid
from collections import Counter
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from headwater.engine.files.local_files import LocalFiles
from headwater.engine.stage.bucket_step import StepContext, step_in_driver
from headwater.engine.state.bucket import BucketMeta
from headwater.engine.state.rescale import Rescaling
from headwater.operators.event_time import NEVER
from headwater.operators.operator import Operator
from unit.operators.stepping import listed, texts

Steps = list[tuple[pa.Table, int]]
"""Rows, and the clock after them."""
SCALES = st.lists(st.sampled_from([1, 2, 3, 7, 64, 256]), min_size=1, max_size=6)


@dataclass(frozen=True)
class Outcome:
    """What came of steps, whatever the order of buckets."""

    out: list[Counter[str]]
    late: list[Counter[str]]
    duplicates: list[int]


def ran(operator: Operator[Any], steps: Steps, counts: list[int], forgetful: bool = False) -> Outcome:
    """Run as the engine does: states are kept in files, and one that is forgetful reads them each time.

    The first step has the first number of buckets, the next one the second, and so on around.
    """
    node, buckets, clock, told = uuid.uuid4().hex, dict[int, BucketMeta](), NEVER, Outcome([], [], [])
    with tempfile.TemporaryDirectory() as place:
        files, before = LocalFiles(Path(place)), counts[0]
        for (rows, now), count in zip(steps, cycle(counts), strict=False):
            if count != before:
                # As little memory as can be: each entry is moved by itself.
                buckets, before = Rescaling(operator, rows.schema, files).run(buckets, count, size=1), count
            node = uuid.uuid4().hex if forgetful else node  # a name under which nothing is remembered
            context = StepContext(node, operator, rows.schema, files, clock, now, count, buckets)
            done = step_in_driver(context, rows)
            assert sum(each.rows for each in done) == len(rows)
            told.out.append(Counter(text for each in done for out in each.out for text in texts(listed(out))))
            told.late.append(
                Counter(text for each in done for late in each.late for text in texts(listed(late)))
            )
            told.duplicates.append(sum(each.duplicates for each in done))
            after: dict[int, BucketMeta] = {each.bucket: each.meta for each in done}
            buckets, clock = {**buckets, **after}, now
    return told
