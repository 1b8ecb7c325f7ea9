"""Events as rows, and old ones read as new ones: ``old_events.jsonl`` has what was once stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest

from headwater.errors import SchemaError
from headwater.sourcing.event_schema import EventSchema, Recording, check_message

AT = datetime(2026, 1, 2, tzinfo=UTC)
CORPUS = [json.loads(line) for line in Path(__file__).with_name("old_events.jsonl").read_text().splitlines()]


@dataclass(frozen=True)
class Deposited:
    cents: int
    note: str = "none"


@dataclass(frozen=True)
class Moved:
    revision: ClassVar[int] = 3
    street: str
    city: str


@dataclass(frozen=True)
class Named:
    first: str


@dataclass(frozen=True)
class Closed:
    pass


def moved_2(fields: Mapping[str, Any]) -> Moved:
    street, _, city = fields["address"].partition(", ")
    return Moved(street, city)


def registered(fields: Mapping[str, Any]) -> list[Any]:
    return [Named(fields["first"]), Moved(fields["street"], fields["city"])]


UPCASTERS: dict[Any, Any] = {
    "Credited": lambda fields: Deposited(fields["amount"] * 100),
    ("Moved", 1): lambda fields: Moved("unknown", fields["city"]),
    ("Moved", 2): moved_2,
    "Registered": registered,
}
SCHEMA = EventSchema("person", [Deposited, Moved, Named, Closed], UPCASTERS)


@pytest.mark.parametrize(
    "event", [Deposited(5, "x"), Moved("Main St", "Oslo"), Named("Ada"), Closed()], ids=str
)
def test_an_event_comes_back_from_its_row(event: Any) -> None:
    row = SCHEMA.row(event, Recording("ada", AT, "Do", "r1"))
    assert (row["key"], row["event"], row["recorded_at"]) == ("ada", type(event).__name__, AT)
    assert SCHEMA.events(row) == [event]


@pytest.mark.parametrize(
    "stored", CORPUS, ids=lambda each: f"{each['row']['event']} {each['row']['revision']}"
)
def test_every_event_that_was_ever_stored_is_read_as_one_of_today(stored: dict[str, Any]) -> None:
    assert [repr(each) for each in SCHEMA.events(stored["row"])] == stored["today"]


def test_an_old_event_without_an_upcaster_is_refused_with_what_to_write() -> None:
    with pytest.raises(SchemaError, match="Vanished") as unknown:
        SCHEMA.events({"event": "Vanished", "revision": 1})
    assert unknown.value.hint == 'add an upcaster: upcasters={("Vanished", 1): lambda fields: …}'
    with pytest.raises(SchemaError, match="revision 9") as newer:
        SCHEMA.events({"event": "Moved", "revision": 9})
    assert newer.value.detail and "revision 3 today" in newer.value.detail


def test_a_field_that_was_added_has_its_default_in_older_events_or_is_refused() -> None:
    row = {"event": "Deposited", "revision": 1, "cents": 5}
    assert SCHEMA.events(row) == [Deposited(5, "none")]
    with pytest.raises(SchemaError, match='has no "cents"'):
        SCHEMA.events({"event": "Deposited", "revision": 1})


def test_an_upcaster_that_returns_no_event_is_refused() -> None:
    schema = EventSchema("person", [Named], {"Old": lambda fields: "Ada"})
    with pytest.raises(SchemaError, match="returned 'Ada'"):
        schema.events({"event": "Old", "revision": 1})


def test_an_upcaster_that_would_never_be_called_is_refused() -> None:
    with pytest.raises(SchemaError, match="never called"):
        EventSchema("person", [Named], {"Named": lambda fields: Named("x")})
    with pytest.raises(SchemaError, match="upcaster"):
        EventSchema("person", [Named], {7: lambda fields: Named("x")})  # type: ignore[dict-item]


@dataclass(frozen=True)
class Priced:
    cents: str


@dataclass(frozen=True)
class Keyed:
    key: str


@dataclass
class Thawed:
    cents: int


def test_one_field_name_with_two_types_is_refused_with_both() -> None:
    with pytest.raises(SchemaError, match='field "cents" has two types') as refused:
        EventSchema("shop", [Deposited, Priced], {})
    assert refused.value.detail == "BIGINT in Deposited, STRING in Priced"


def test_a_field_named_as_what_every_event_has_is_refused() -> None:
    with pytest.raises(SchemaError, match="named as a column that every record has"):
        EventSchema("shop", [Keyed], {})


def test_a_class_that_is_not_frozen_is_refused() -> None:
    for kind in (Thawed, int, "x"):
        with pytest.raises(SchemaError, match="frozen"):
            check_message(kind, "event")  # type: ignore[arg-type]


def test_events_of_one_name_and_events_of_others_are_refused() -> None:
    with pytest.raises(SchemaError, match="two events of one name"):
        EventSchema("shop", [Named, Named], {})
    with pytest.raises(SchemaError, match='no event "Priced"'):
        SCHEMA.row(Priced("5"), Recording("k", AT, None, None))


def test_a_field_that_may_be_none_and_has_another_default_is_refused() -> None:
    @dataclass(frozen=True)
    class Noted:
        note: str | None = "n/a"

    @dataclass(frozen=True)
    class Listed:
        names: list[str] | None = field(default_factory=list)

    for kind in (Noted, Listed):
        with pytest.raises(SchemaError, match="may be None, and has another default") as caught:
            EventSchema("notes", [kind], {})
        assert "let its default be None" in str(caught.value.hint) and "upcaster" in str(caught.value.hint)
