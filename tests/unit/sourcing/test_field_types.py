from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import pytest

import headwater
from headwater.errors import SchemaError
from headwater.sourcing.field_types import field_type, field_types, loaded, stored, stored_field


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(Enum):
    LOW = 1


class Mixed(Enum):
    A = 1
    B = "b"


@dataclass(frozen=True)
class Place:
    city: str
    floor: int | None


CASES: list[tuple[Any, str, Any]] = [
    (bool, "BOOLEAN", True),
    (int, "BIGINT", -7),
    (float, "DOUBLE", 0.1),
    (str, "STRING", "Zoë"),
    (bytes, "BINARY", b"\x00\xff"),
    (datetime, "TIMESTAMP", datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)),
    (date, "DATE", date(2026, 1, 2)),
    (uuid.UUID, "STRING", uuid.UUID(int=7)),
    (Annotated[Decimal, "DECIMAL(12,2)"], "DECIMAL(12,2)", Decimal("12.50")),
    (Annotated[int, "INT"], "INT", 5),
    (Literal["a", "b"], "STRING", "a"),
    (Colour, "STRING", Colour.BLUE),
    (Level, "BIGINT", Level.LOW),
    (list[int], "ARRAY<BIGINT>", [1, 2]),
    (tuple[Colour, ...], "ARRAY<STRING>", (Colour.RED,)),
    (frozenset[str], "ARRAY<STRING>", frozenset("ab")),
    (dict[str, Colour], "MAP<STRING, STRING>", {"a": Colour.RED}),
    (list[int | None], "ARRAY<BIGINT>", [None, 1, None]),
    (list[list[str | None] | None], "ARRAY<ARRAY<STRING>>", [None, [], [None], [""]]),
    (tuple[Place | None, ...], "ARRAY<STRUCT<city: STRING, floor: BIGINT>>", (None, Place("", None))),
    (frozenset[Colour | None], "ARRAY<STRING>", frozenset([Colour.RED, None, Colour.BLUE])),
    (dict[str, int | None], "MAP<STRING, BIGINT>", {"ab": None, "": 1}),
    (Place, "STRUCT<city: STRING, floor: BIGINT>", Place("Oslo", None)),
    (list[Place], "ARRAY<STRUCT<city: STRING, floor: BIGINT>>", [Place("Oslo", 3)]),
]


@pytest.mark.parametrize(
    ("annotation", "ddl", "value"), CASES, ids=[each[1] + str(n) for n, each in enumerate(CASES)]
)
def test_a_value_comes_back_from_a_log_as_it_was(annotation: Any, ddl: str, value: Any) -> None:
    kind = field_type(annotation)
    assert kind is not None and kind.ddl == ddl and not kind.optional
    with headwater.open("memory:") as log:
        log.create_topic("t", f"x {ddl}, y BIGINT")
        with log.producer("t") as producer:
            producer.send({"x": stored(value, kind)})
            producer.send({"y": 1})
        first, second = (row["x"] for batch in log.read("t") for row in batch.to_pylist())
    assert loaded(first, kind) == value
    assert type(loaded(first, kind)) is type(value)
    assert loaded(second, kind) is None


def test_none_is_a_value_where_the_annotation_says_so() -> None:
    for annotation in (int | None, Colour | None):
        kind = field_type(annotation)
        assert kind is not None and kind.optional


@pytest.mark.parametrize(
    "annotation",
    [Any, Decimal, timedelta, complex, object, int | str, tuple[int, str], dict[int, str], Mixed],
    ids=str,
)
def test_what_would_not_come_back_is_refused(annotation: Any) -> None:
    assert field_type(annotation) is None


@dataclass(frozen=True)
class Odd:
    wait: timedelta


def test_a_refusal_names_the_class_the_field_and_what_can_be_stored() -> None:
    with pytest.raises(SchemaError, match=r'field "wait" of "Odd" cannot be stored: timedelta'):
        field_types(Odd)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (list[int], [1, None]),
        (tuple[list[str], ...], (["a"], [None])),
        (dict[str, int], {"a": None}),
        (list[Place], [Place(None, 1)]),  # type: ignore[arg-type]
        (list[int | None] | None, None),
        (int, None),
    ],
)
def test_a_none_that_no_annotation_tells_of_is_refused_however_deep_it_is(
    annotation: Any, value: Any
) -> None:
    kind = field_type(annotation)
    assert kind is not None
    if kind.optional:
        assert stored_field(value, kind, "x", "an event") is None
        return
    with pytest.raises(SchemaError, match=r'field "x" of an event (is None|has None inside)') as caught:
        stored_field(value, kind, "x", "an event")
    assert "| None" in str(caught.value.hint)


def test_a_map_is_read_the_same_whether_it_comes_as_pairs_or_as_a_dict() -> None:
    kind = field_type(dict[str, int])
    assert kind is not None
    assert loaded({"ab": 1}, kind) == loaded([("ab", 1)], kind) == {"ab": 1}
