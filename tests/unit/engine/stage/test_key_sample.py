"""The keys that rows have most."""

from __future__ import annotations

import pyarrow as pa

from headwater.engine.stage.key_sample import FEWEST, SAMPLED, key_sample, sample_size


def test_the_most_frequent_keys_are_told_with_their_counts() -> None:
    rows = pa.table({"k": ["a"] * 60 + ["b"] * 30 + ["c"], "n": [1] * 91})
    assert key_sample(rows, ("k", "n")) == {"a, 1": 60, "b, 1": 30}


def test_of_many_rows_some_from_all_over_are_looked_at() -> None:
    rows = pa.table({"k": ["a"] * 9_000 + ["b"] * 1_000})
    found = key_sample(rows, ("k",))
    assert sum(found.values()) == sample_size(10_000) == SAMPLED
    assert found["b"] == SAMPLED // 10


def test_nothing_is_told_of_few_rows_or_of_rows_without_a_key() -> None:
    rows = pa.table({"k": ["a"] * (FEWEST - 1)})
    assert (key_sample(rows, ("k",)), sample_size(len(rows))) == ({}, 0)
    assert key_sample(pa.table({"k": ["a"] * 100}), ()) == {}
