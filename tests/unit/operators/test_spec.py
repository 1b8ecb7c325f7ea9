"""An operator as it is declared, before its rows are known."""

from __future__ import annotations

from contextvars import copy_context
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from headwater.operators.latest import Latest
from headwater.operators.pairing import Pairing
from headwater.operators.spec import OperatorSpec, Side, setting_aside
from headwater.schema import parse
from headwater.transforms.rows import scan

SIDE = Side(parse("id BIGINT, at TIMESTAMP"), "at")


def build(rows: Side) -> Latest:
    return Latest(("id",), str(rows.event_time))


def test_the_operator_is_built_when_its_rows_are_known() -> None:
    assert OperatorSpec("latest", build).build(SIDE) == Latest(("id",), "at")


def test_a_declaration_is_one_input_and_no_table_unless_it_says_so() -> None:
    spec = OperatorSpec("latest", build)
    assert (spec.right, spec.pairing, spec.tables) == (None, None, ())
    assert SIDE.table == ()
    assert OperatorSpec("join", build, "right", Pairing((("id", "id"),)), (1,)).tables == (1,)


def test_a_declaration_does_not_change() -> None:
    spec: Any = OperatorSpec("latest", build)
    with pytest.raises(FrozenInstanceError):
        spec.name = "first"


def built() -> Any:
    return scan(lambda state, event: {"n": 1}, by="id", schema="n BIGINT").build(SIDE)


def test_rows_are_set_aside_only_by_what_is_built_where_that_is_asked_for() -> None:
    def asked() -> Any:
        setting_aside.set(True)
        return built()

    assert copy_context().run(asked).tolerant
    assert not built().tolerant
