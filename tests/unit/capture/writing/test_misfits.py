"""Changes that their topic cannot hold."""

from __future__ import annotations

import pytest

import headwater
from changes_kit import changes
from headwater.capture.writing.misfits import Misfits
from headwater.capture.writing.topic_writer import UnfitRow
from headwater.errors import RowError


def test_they_stop_the_capture_with_their_key_and_position() -> None:
    with headwater.open("memory:") as log, Misfits(log, "crm", "stop") as misfits:
        with pytest.raises(RowError, match="key \\[2\\]") as refused:
            told = changes(("insert", 1, "a"), ("insert", 2, "b"))
            misfits.take(told, [UnfitRow(1, "too long", 1)], "customers")
        assert "too long; at 00000001" in str(refused.value)


def test_they_are_set_aside_once_where_that_is_asked() -> None:
    delivered = changes(("insert", 1, "a"), ("delete", 2, None))
    with headwater.open("memory:") as log:
        for _ in range(2):  # the second time after a crash
            with Misfits(log, "crm", "dead_letter") as misfits:
                bad = [UnfitRow(0, "too long", 0), UnfitRow(1, "too odd", 1)]
                misfits.take(delivered, bad, "customers")
                misfits.flush()
                assert misfits.stored("customers") == 2
        rows = [row for part in log.read("crm.dead") for row in part.to_pylist()]
    assert [(row["key"], row["operation"], row["position"], row["reason"]) for row in rows] == [
        ("[1]", "insert", "00000000", "too long"),
        ("[2]", "delete", "00000001", "too odd"),
    ]
    assert rows[0]["row"] == '{"id": 1, "name": "a"}'
