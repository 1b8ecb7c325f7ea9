"""Queries that are at the same place become one checkpoint, which says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater.engine.home import checkpoint, checkpoint_merge
from headwater.log import Position


def query(path: Path, done: int, **ends: int) -> Path:
    """Make a query that has come to an offset in each of its inputs."""
    checkpoint.write_start(path, {name: Position(name, {0: 0}, "id") for name in ends})
    told = {name: {"topic": name, "id": "id", "offsets": {"0": end}} for name, end in ends.items()}
    for folder, text in (("offsets", "\n".join(["v1", "{}", json.dumps(told)])), ("commits", "v1\n{}")):
        (path / folder).mkdir()
        (path / folder / str(done)).write_text(text)
    return path


def at(path: Path, *inputs: str) -> checkpoint_merge.QueryOffsets:
    found = checkpoint_merge.stopped_at(path, inputs)
    assert found is not None
    return found


def test_queries_are_together_where_they_are_equally_far_in_what_they_share(tmp_path: Path) -> None:
    one = at(query(tmp_path / "one", 3, orders=7, rates=2), "orders", "rates")
    same = at(query(tmp_path / "same", 5, orders=7), "orders")
    less = at(query(tmp_path / "less", 5, orders=4), "orders")
    assert checkpoint_merge.are_aligned([one, same])
    assert not checkpoint_merge.are_aligned([one, less])
    assert checkpoint_merge.lag(less, checkpoint_merge.furthest([one, less])) == 3


def test_a_query_with_a_micro_batch_under_way_stands_nowhere(tmp_path: Path) -> None:
    path = query(tmp_path / "one", 3, orders=7)
    (path / "offsets" / "4").write_text((path / "offsets" / "3").read_text())
    assert checkpoint_merge.stopped_at(path, ["orders"]) is None


def test_merged_queries_go_on_from_the_same_place_after_the_last_number_of_all(tmp_path: Path) -> None:
    one = at(query(tmp_path / "one", 3, orders=7, rates=2), "orders", "rates")
    two = at(query(tmp_path / "two", 5, orders=7), "orders")
    checkpoint_merge.merge([one, two], {}, tmp_path / "both")
    merged = at(tmp_path / "both", "orders", "rates")
    assert merged.batch == 5
    assert merged.position("orders") == Position("orders", {0: 7}, "id")
    assert merged.position("rates") == Position("rates", {0: 2}, "id")
    assert checkpoint.read_start(tmp_path / "both").keys() == {"orders", "rates"}


def test_queries_that_are_apart_are_not_merged(tmp_path: Path) -> None:
    apart = [at(query(tmp_path / str(end), 3, orders=end), "orders") for end in (4, 7)]
    with pytest.raises(AssertionError):
        checkpoint_merge.merge(apart, {}, tmp_path / "both")
    assert not (tmp_path / "both").exists()
