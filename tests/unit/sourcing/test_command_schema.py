"""Commands and questions as rows: what comes back is what was sent, or an error."""

from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import SchemaError, UsageError
from headwater.schema import parse
from headwater.sourcing.command_schema import CommandSchema, Sending


@dataclass(frozen=True)
class Pay:
    amount: Annotated[Decimal, "DECIMAL(12,2)"]
    note: str | None = None
    copies: int = 1


@dataclass(frozen=True)
class Close:
    pass


SCHEMA = CommandSchema("account", [Pay, Close])
SENDING = Sending("ada", "r1", datetime(2026, 1, 2, tzinfo=UTC))
PAYMENTS = st.builds(Pay, st.decimals(-99, 99, places=2), st.none() | st.text(max_size=5), st.integers(-9, 9))


@given(PAYMENTS | st.just(Close()))
def test_a_command_survives_its_row(command: Pay | Close) -> None:
    row = SCHEMA.row(command, SENDING)
    assert SCHEMA.command({name: row.get(name) for name in parse(SCHEMA.ddl).names}) == command


def test_a_field_that_was_added_since_has_its_default() -> None:
    row = SCHEMA.row(Pay(Decimal("1.00")), SENDING)
    assert SCHEMA.command({**row, "copies": None}) == Pay(Decimal("1.00"))


def test_what_is_no_command_is_refused() -> None:
    with pytest.raises(UsageError, match='no command "str"'):
        SCHEMA.row("pay", SENDING)
    with pytest.raises(SchemaError, match='no command "Steal"'):
        SCHEMA.command({"command": "Steal"})
    with pytest.raises(SchemaError, match="two commands of one name"):
        CommandSchema("account", [Pay, Pay])


def test_a_question_has_its_arguments_as_json() -> None:
    row = SCHEMA.question("balance", {"at": 1}, SENDING)
    assert (row["command"], row["question"], row["key"]) == ("balance", '{"at":1}', "ada")


def test_the_content_of_a_command_is_the_same_where_a_field_with_a_default_is_added() -> None:
    before = make_dataclass("Pay", [("cents", int)], frozen=True)
    after = make_dataclass(
        "Pay",
        [("cents", int), ("currency", str, "EUR"), ("notes", list[str], field(default_factory=list))],
        frozen=True,
    )
    old, new = CommandSchema("till", [before]), CommandSchema("till", [after])
    assert old.content(before(5)) == new.content(after(5)) != new.content(after(6))
    assert new.content(after(5, "USD")) != new.content(after(5))


def test_a_command_with_none_where_its_annotation_has_none_is_not_sent() -> None:
    schema, sending = CommandSchema("till", [Pay]), Sending("a", "r", datetime.now(UTC))
    with pytest.raises(SchemaError, match='field "copies" of command "Pay" of decider "till" is None'):
        schema.row(Pay(Decimal(1), copies=None), sending)  # type: ignore[arg-type]
