"""Many values at once: those that do not fit are named, the others are kept in their order."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import RowError
from headwater.values import bulk

SCHEMA = pa.schema([("n", pa.int64())])


@given(st.lists(st.integers(-3, 9), max_size=20))
def test_every_value_is_a_row_or_an_error(numbers: list[int]) -> None:
    def parse(start: int, end: int) -> pa.RecordBatch:
        if min(numbers[start:end]) < 0:
            raise RowError(f"{min(numbers[start:end])} is negative")
        return pa.RecordBatch.from_pydict({"n": numbers[start:end]}, schema=SCHEMA)

    batch, bad = bulk.decoded(len(numbers), SCHEMA, parse)
    assert batch.schema == SCHEMA
    assert batch.column("n").to_pylist() == [n for n in numbers if n >= 0]
    assert [(at, error.message) for at, error in bad] == [
        (at, f"{n} is negative") for at, n in enumerate(numbers) if n < 0
    ]
