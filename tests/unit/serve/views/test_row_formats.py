"""Which form a client likes best."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.serve.http.problem import HttpProblem
from headwater.serve.views.row_formats import ARROW, CSV, NDJSON, accepted, encoded

JSON = "application/json"


@pytest.mark.parametrize(
    ("header", "form"),
    [
        ("", JSON), ("*/*", JSON), ("text/csv", CSV), ("text/*;q=0.5, application/x-ndjson", NDJSON),
        ("text/html, application/json;q=0.9, */*;q=0.1", JSON), (f"{ARROW};q=0, {CSV}", CSV),
        ("text/csv;q=0.1, application/jsonl;q=0.2", NDJSON),
    ],
)  # fmt: skip
def test_the_form_that_is_liked_best_is_chosen(header: str, form: str) -> None:
    assert accepted(header) == form


def test_a_form_that_there_is_not_is_refused() -> None:
    for header in ("text/html", "application/json;q=0", "x;q=y"):
        with pytest.raises(HttpProblem):
            accepted(header)


def test_no_rows_have_a_form_too() -> None:
    schema = pa.schema([("a", pa.int64())])
    assert encoded([], schema, CSV) == b'"a"\n' and encoded([], schema, NDJSON) == b""
