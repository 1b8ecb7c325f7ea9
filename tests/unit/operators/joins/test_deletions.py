"""Which changes are deletions."""

from __future__ import annotations

import pyarrow as pa

from headwater.operators.joins.deletions import deletions
from headwater.record import DELETED


def test_rows_that_do_not_say_so_are_none() -> None:
    assert deletions(pa.table({"id": [1, 2]})).tolist() == [False, False]
    silent = pa.table({DELETED: pa.array([None, True, False, None], pa.bool_())})
    assert deletions(silent).tolist() == [False, True, False, False]


def test_changes_in_several_pieces_are_told_in_their_order() -> None:
    column = pa.chunked_array([[True], [], [None, False, True]], pa.bool_())
    assert deletions(pa.table({DELETED: column})).tolist() == [True, False, False, True]


def test_of_no_rows_none_is_a_deletion() -> None:
    assert deletions(pa.table({DELETED: pa.array([], pa.bool_())})).tolist() == []
    assert deletions(pa.table({"id": pa.array([], pa.int64())})).dtype == bool
