"""The manifest: replaced whole, by the newest runner alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import Position
from headwater.errors import Fenced, SchemaError, SinkRefused
from headwater.sinks.parquet.manifest import NAME, File, Manifest, begun, current, load, locked, store

COUNTS = st.integers(0, 2**62)
FILES = st.builds(File, st.text("abc", min_size=1), COUNTS, COUNTS, st.integers(0, 3))
MANIFESTS = st.builds(
    Manifest,
    st.just("id BIGINT"),
    epoch=st.integers(0, 99),
    batch=st.integers(-1, 99),
    positions=st.sampled_from([(), (Position("orders", {0: 9, 2: 1}),)]),
    clock=st.none() | st.integers(-(2**62), 2**62),
    deletions=st.booleans(),
    files=st.lists(FILES, max_size=3).map(tuple),
    replaced=st.lists(st.tuples(st.text("abc"), st.floats(0, 1e10)), max_size=2).map(tuple),
)


@given(made=MANIFESTS)
def test_a_manifest_is_read_as_it_was_stored(
    tmp_path_factory: pytest.TempPathFactory, made: Manifest
) -> None:
    directory = tmp_path_factory.mktemp("sink")
    store(directory, made)
    assert load(directory) == made


def test_where_there_is_none_there_is_none(tmp_path: Path) -> None:
    assert load(tmp_path) is None
    with pytest.raises(SinkRefused, match="is gone"):
        current(tmp_path, 1)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2}', '{"format": 2, "manifest": {"x": 1}}'])
def test_what_cannot_be_read_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(SinkRefused, match="cannot be read"):
        begun(tmp_path, "id BIGINT")
    assert (tmp_path / NAME).read_text() == text


def test_only_the_newest_runner_has_the_manifest(tmp_path: Path) -> None:
    with locked(tmp_path):
        first = begun(tmp_path, "id BIGINT")
    store(tmp_path, replace(first, batch=7))
    second = begun(tmp_path, "id BIGINT")
    assert (second.epoch, second.batch) == (first.epoch + 1, 7)
    assert current(tmp_path, second.epoch) == second
    with pytest.raises(Fenced):
        current(tmp_path, first.epoch)


def test_other_columns_are_refused_and_the_epoch_stays(tmp_path: Path) -> None:
    made = begun(tmp_path, "id BIGINT")
    with pytest.raises(SchemaError, match="holds other columns"):
        begun(tmp_path, "id INT")
    assert load(tmp_path) == made


@pytest.mark.parametrize(("number", "whose"), [(1, "an older"), (3, "a newer")])
def test_a_manifest_of_another_format_is_refused(tmp_path: Path, number: int, whose: str) -> None:
    (tmp_path / NAME).write_text(f'{{"format": {number}, "manifest": {{}}}}')
    with pytest.raises(SinkRefused, match=f"was made by {whose} Headwater"):
        load(tmp_path)
