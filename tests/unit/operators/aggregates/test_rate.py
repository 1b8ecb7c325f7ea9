"""Rates in each kind of window; `test_agg.py` has them against an oracle."""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from headwater import agg, tables, windows
from headwater.errors import UsageError
from headwater.operators.event_time import FOREVER, NEVER
from headwater.operators.spec import Side
from headwater.schema import parse
from unit.operators.stepping import Move, Row, play

SCHEMA = parse("k STRING, bytes BIGINT, at TIMESTAMP")
SECOND = 1_000_000


def row(at: int, bytes: int | None = None) -> Row:
    return {"k": "a", "bytes": bytes, "at": at * SECOND}


def told(door: Any, rows: list[Row], names: tuple[str, ...] = ("r",)) -> list[tuple[Any, ...]]:
    operator = door.build(Side(SCHEMA, "at"))
    played = play(operator, [Move(rows, NEVER), Move([], FOREVER)], SCHEMA)
    return [tuple(each[name] for name in ("window_start", *names)) for each in played.out]


def test_a_tumbling_window_tells_rows_per_second_and_amounts_per_what_is_asked() -> None:
    door = windows.tumbling("10 seconds", "k", r=agg.rate(), b=agg.rate("bytes", per="1 minute"))
    rows = [row(1, 100), row(2, None), row(3, 50), row(11, None)]
    assert told(door, rows, ("r", "b")) == [(0, 0.3, 900.0), (10 * SECOND, 0.1, None)]


def test_a_hopping_window_divides_by_its_length_and_not_by_its_hop() -> None:
    door = windows.hopping("10 seconds", "5 seconds", "k", r=agg.rate())
    assert told(door, [row(6)]) == [(0, 0.1), (5 * SECOND, 0.1)]


def test_a_sliding_window_divides_by_its_length() -> None:
    door = windows.sliding("10 seconds", "k", r=agg.rate())
    assert [rate for _, rate in told(door, [row(6), row(8)])] == [0.1, 0.2]


def test_an_unfinished_window_divides_by_its_whole_length() -> None:
    door = windows.tumbling("10 seconds", "k", emit="early", every="5 seconds", r=agg.rate())
    operator: Any = door.build(Side(SCHEMA, "at"))
    played = play(operator, [Move([row(1)], NEVER), Move([], 5 * SECOND)], SCHEMA)
    assert [(each["r"], each["complete"]) for each in played.out] == [(0.1, False)]


def test_rates_are_compared() -> None:
    door = windows.tumbling("10 seconds", "k", compare="10 seconds", r=agg.rate())
    assert told(door, [row(1), row(11), row(12)], ("r", "r_before", "r_change", "r_ratio")) == [
        (0, 0.1, None, None, None),
        (10 * SECOND, 0.2, 0.1, 0.1, 2.0),
    ]


def test_sessions_refuse_it_for_their_lengths_differ() -> None:
    with pytest.raises(UsageError, match="rate needs windows of one length") as caught:
        windows.session("1 minute", r=agg.rate())
    assert "agg.count()" in (caught.value.hint or "")


def test_without_a_window_it_is_refused() -> None:
    with pytest.raises(UsageError, match="rate needs windows of one length"):
        agg.rate().over(pa.table({"n": [1]}))
    with pytest.raises(UsageError, match='cannot take "r" as an aggregate'):
        tables.group("k", r=agg.rate())


def test_a_column_that_is_no_number_is_refused() -> None:
    with pytest.raises(UsageError, match='rate cannot take column "k"'):
        agg.rate("k").within(timedelta(seconds=1)).output("r", SCHEMA)


def test_per_is_a_length_of_time() -> None:
    with pytest.raises(UsageError, match='invalid interval "often"'):
        agg.rate(per="often")


def test_it_can_be_sent_to_a_worker_and_its_text_tells_its_settings() -> None:
    one, other = (agg.rate("bytes").within(timedelta(seconds=n)) for n in (1, 2))
    assert pickle.loads(pickle.dumps(one)) == one
    assert str(one) != str(other)
