"""The outbox as its sink writes it: who may, how much, and what a version has covered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from delivery_kit import batch, outbox, sink, webhook
from headwater import Position
from headwater.errors import Fenced, SinkRefused, SinkUnavailable, UsageError
from headwater.sinks.delivery.figures import delivery_status
from headwater.sinks.delivery.outbox import is_covered

NOWHERE = webhook("http://127.0.0.1:1/hook")


def waiting(home: Path) -> int:
    status = delivery_status(outbox(home))
    assert status is not None
    return status.waiting


def test_an_outbox_that_is_full_takes_nothing_until_there_is_room(tmp_path: Path) -> None:
    with sink(tmp_path, replace(NOWHERE, limit=3), sends=False) as hooks:
        hooks.begin()
        assert hooks.commit(batch(0, ("a", 1), ("b", 1), ("c", 1), ("d", 1)))  # it began below the limit
        with pytest.raises(SinkUnavailable, match=r"outbox of webhook .* is full") as told:
            hooks.commit(batch(1, ("e", 1)))
        assert not isinstance(told.value, SinkRefused)  # it is tried again
        assert hooks.commit(batch(1))
        assert not hooks.commit(batch(0, ("a", 1)))
    assert waiting(tmp_path) == 4


def test_a_runner_that_was_replaced_adds_nothing(tmp_path: Path) -> None:
    with sink(tmp_path, NOWHERE, sends=False) as first, sink(tmp_path, NOWHERE, sends=False) as second:
        first.begin()
        second.begin()
        with pytest.raises(Fenced):
            first.commit(batch(0, ("a", 1)))
    assert waiting(tmp_path) == 0


def test_a_sink_that_has_not_begun_takes_nothing(tmp_path: Path) -> None:
    with sink(tmp_path, NOWHERE) as hooks, pytest.raises(UsageError, match="has not begun"):
        hooks.commit(batch(0, ("a", 1)))


def test_positions_are_covered_where_none_is_beyond() -> None:
    here, further = str(Position("t", {0: 5, 1: 2}, "id")), str(Position("t", {0: 5, 1: 3}, "id"))
    assert is_covered(here, further) and is_covered(here, here)
    assert not is_covered(further, here)
    assert not is_covered(here, "")
    assert not is_covered(here, str(Position("t", {0: 9, 1: 9}, "another")))
