"""A value that a reader gives is one of the column, exactly, or is refused."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest

from headwater.errors import UsageError
from headwater.values.one_value import fitted


@pytest.mark.parametrize(
    ("value", "kind"), [(7, pa.int32()), ("a", pa.string()), (date(2026, 1, 2), pa.date32())]
)
def test_a_value_of_the_column_is_taken_as_it_is(value: Any, kind: pa.DataType) -> None:
    assert fitted(value, pa.field("id", kind), "view").to_pylist() == [value]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1.5, pa.int64()),
        (2.0, pa.int64()),
        (2**40, pa.int32()),
        ("7", pa.int64()),
        (datetime(2026, 1, 2, 3), pa.date32()),
        (None, pa.string()),
    ],
)
def test_a_value_that_would_be_changed_is_refused(value: Any, kind: pa.DataType) -> None:
    with pytest.raises(UsageError, match='column "id" of view "v" is'):
        fitted(value, pa.field("id", kind), 'view "v"')
