"""Where a query began, how far it is, and the watermark of several inputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.engine.home import checkpoint
from headwater.engine.home.checkpoint import Input, InputProgress
from headwater.errors import HeadwaterError
from headwater.log import Position

AT = Position("orders", {0: 7})
LATER = Position("orders", {0: 9})


def test_the_slowest_input_holds_the_watermark() -> None:
    reached = InputProgress({"fast": Input(AT, 50), "slow": Input(AT, 20)})
    assert (reached.watermark, reached.slowest) == (20, "slow")


def test_an_input_without_time_does_not_hold_the_watermark() -> None:
    assert InputProgress({"timed": Input(AT, 50), "untimed": Input(AT)}).watermark == 50
    assert InputProgress({"untimed": Input(AT)}).watermark is None


def test_a_silent_input_lets_time_go_on_no_further_than_what_may_be_under_way() -> None:
    awake = Input(AT, 1_000, heard=900)
    silent = Input(AT, 10, silent=True, lateness=100, silence=50)
    assert InputProgress({"awake": awake, "silent": silent}).watermark == 900 - 50 - 100


def test_where_all_inputs_are_silent_time_is_that_of_the_furthest() -> None:
    inputs = {"one": Input(AT, 10, silent=True, heard=500), "two": Input(AT, 400, silent=True, heard=500)}
    assert InputProgress(inputs).watermark == 400


def test_a_query_begins_once(tmp_path: Path) -> None:
    checkpoint.write_start(tmp_path, {"orders": AT})
    checkpoint.write_start(tmp_path, {"orders": LATER})
    assert checkpoint.read_start(tmp_path) == {"orders": AT}


def test_an_input_that_is_added_before_the_first_micro_batch_is_learnt(tmp_path: Path) -> None:
    checkpoint.write_start(tmp_path, {"orders": AT})
    checkpoint.write_start(tmp_path, {"orders": LATER, "rates": LATER})
    assert checkpoint.read_start(tmp_path) == {"orders": AT, "rates": LATER}


def test_the_micro_batch_before_the_first_ends_where_the_query_began(tmp_path: Path) -> None:
    checkpoint.write_start(tmp_path, {"orders": AT})
    assert checkpoint.input_progress(tmp_path, -1).positions == (AT,)


def test_a_plan_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    checkpoint.offsets_file(tmp_path, 0).write_text("v1\n{}")
    with pytest.raises(HeadwaterError):
        checkpoint.input_progress(tmp_path, 0)


def test_batches_are_counted_by_their_numbers_and_not_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    for name in ("9", "10", "11.tmp", ".10.crc"):
        (tmp_path / "offsets" / name).touch()
    assert (checkpoint.last_batch(tmp_path), checkpoint.last_done(tmp_path)) == (10, -1)
    assert (checkpoint.oldest_retained(tmp_path, 3), checkpoint.oldest_retained(tmp_path, 10)) == (9, 10)
