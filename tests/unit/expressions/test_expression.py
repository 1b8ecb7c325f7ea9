"""What can be written, what it means, and what is refused by name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from headwater.errors import UsageError
from headwater.expressions import parse, split

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("at", pa.int64()),
        ("text", pa.string()),
        ("payload", pa.struct([("meta", pa.struct([("at", pa.int64())]))])),
        ("list", pa.list_(pa.int64())),
        ("map", pa.map_(pa.string(), pa.string())),
    ]
)
ROWS = pa.RecordBatch.from_pylist(
    [
        {"at": 1500, "text": "A'b", "payload": {"meta": {"at": 2}}, "list": [7, 8], "map": [("k", "v")]},
        {"at": None, "text": None, "payload": None, "list": [], "map": []},
        {"at": 3, "text": "c", "payload": {"meta": None}, "list": None, "map": None},
    ],
    schema=SCHEMA,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at", [1500, None, 3]),
        ("`at`", [1500, None, 3]),
        ("at + 2 * 3 - -1", [1507, None, 10]),
        ("(at + 2) * 3", [4506, None, 15]),
        ("at / 1000", [1.5, None, 0.003]),
        ("payload.meta.at", [2, None, None]),
        ("list[1]", [8, None, None]),
        ("map['k']", ["v", None, None]),
        ("concat(text, '''', \"x\")", ["A'b'x", None, "c'x"]),
        ("UPPER(coalesce(text, 'none'))", ["A'B", "NONE", "C"]),
        ("CAST(at AS STRING)", ["1500", None, "3"]),
        ("timestamp_millis(at - 1500)", [EPOCH, None, EPOCH - timedelta(milliseconds=1497)]),
        ("coalesce(NULL, at)", [1500, None, 3]),
    ],
)  # fmt: skip
def test_an_expression_is_computed_for_each_row(text: str, expected: list[object]) -> None:
    parsed = parse(text)
    found = parsed.over(ROWS)
    assert found.to_pylist() == expected
    assert found.type == parsed.type(SCHEMA)


def test_it_knows_its_name_its_columns_and_whether_it_is_a_column() -> None:
    named = parse("timestamp_millis(at) AS happened")
    assert (named.text, named.name, named.columns, named.column) == (
        "timestamp_millis(at)", "happened", {"at"}, None,
    )  # fmt: skip
    assert parse("at").column == "at"
    assert parse("payload.meta.at").columns == {"payload"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("timestamp_milis(at)", 'did you mean "timestamp_millis"'),
        ("at +", "is missing"),
        ("at at", "too much"),
        ("at; drop", '";"'),
        ("(at", '")" is missing'),
        ("CAST(at)", "AS"),
        ("to_timestamp()", "0 arguments"),
        ("at AS", "a name is missing"),
        ("", "is missing"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(text)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("aat", 'unknown column "aat"'),
        ("payload.mta", 'did you mean "meta"'),
        ("at.x", "needs a STRUCT"),
        ("at['x']", "needs a MAP"),
        ("timestamp_millis(text)", "an integer"),
        ("to_timestamp(text, 'qq')", '"qq"'),
    ],
)
def test_what_cannot_be_computed_over_the_columns_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(text).type(SCHEMA)
    assert said in str(refused.value)


def test_commas_part_expressions_but_not_within_calls_and_texts() -> None:
    assert split("concat(a, b), c AS d, e['x,y'], ','") == ["concat(a, b)", "c AS d", "e['x,y']", "','"]
