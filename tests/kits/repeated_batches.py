"""Random batches of a keyed sink, some of them committed again: what they come to is a dictionary.

One property for all sinks by key; each test opens its own target, and reads it as a stranger would.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from hypothesis import strategies as st

from headwater.sinks import Batch, Sink

Changes = list[tuple[int, str | None]]
"""Ids and names; one without a name is a deletion."""

BATCHES = st.lists(
    st.lists(st.tuples(st.integers(0, 9), st.none() | st.text(max_size=5)), max_size=12), max_size=6
)
AGAIN = st.lists(st.integers(0, 5), max_size=6)
"""The numbers of batches that come again, after each later one; the sink begins again after them, too."""


def rows(*pairs: tuple[int, str | None]) -> pa.Table:
    """Return rows of ids and names; one without a name is a deletion."""
    ids, names = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array(names, pa.string()),
                     "_deleted": pa.array([name is None for name in names], pa.bool_())})  # fmt: skip


def committed(sink: Sink, batches: Sequence[Changes], again: Sequence[int]) -> dict[int, str]:
    """Commit batches, repeat some, and return the names that a reader sees then, by id."""
    expected: dict[int, str | None] = {}
    sink.begin()
    for number, changes in enumerate(batches):
        assert sink.commit(Batch(number, rows(*changes)))
        expected |= dict(changes)
        for earlier in (each for each in again if each <= number):
            assert not sink.commit(Batch(earlier, rows(*batches[earlier])))
        if number in again:
            assert sink.begin() == number
    return {key: name for key, name in expected.items() if name is not None}
