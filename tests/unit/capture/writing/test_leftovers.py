"""Keys of a topic that a new snapshot does not find."""

from __future__ import annotations

import pyarrow as pa

from changes_kit import CAPTURED, batch
from headwater.capture.writing.leftovers import Leftovers


def test_what_is_found_or_changed_is_none() -> None:
    leftovers = Leftovers(pa.table({"id": pa.chunked_array([[1, 2], [3, 4]])}), CAPTURED)
    leftovers.take(batch([(2, "b"), (9, "z")]))
    leftovers.take(batch([]))
    assert leftovers.rest().to_pydict() == {"id": [1, 3, 4]}
    leftovers.clear()
    assert leftovers.rest().num_rows == 0


def test_keys_are_compared_as_the_topic_has_them() -> None:
    leftovers = Leftovers(pa.table({"id": pa.array([1, 2], pa.int64())}), CAPTURED)
    leftovers.take(pa.RecordBatch.from_pydict({"id": pa.array([1], pa.int32())}))
    assert leftovers.rest().to_pydict() == {"id": [2]}
