"""The changes of a view, block by block and in each form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.cli.formats import view_changes
from headwater.cli.formats.view_changes import before_oldest, blocks, change_writer
from headwater.sinks import Batch
from headwater.views import ViewStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ViewStore]:
    """A view whose row was inserted, changed and deleted."""
    with ViewStore(tmp_path / "views.db") as store, store.sink("counts", "id STRING, n BIGINT", "id") as sink:
        sink.begin()
        for number in (0, 1):
            sink.commit(Batch(number, pa.table({"id": ["a"], "n": [number]})))
        sink.commit(Batch(2, pa.table({"id": ["a"], "n": [None], "_deleted": [True]})))
        yield store


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_blocks_hold_every_change_once_and_in_order(
    store: ViewStore, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_changes, "BLOCK", size)
    found = list(blocks(store.view("counts"), 0, follow=False))
    assert max(map(len, found)) == min(size, 3)
    assert [change.sequence for block in found for change in block] == [1, 2, 3]
    assert list(blocks(store.view("counts"), 3, follow=False)) == []


def test_a_table_shows_the_row_after_or_before(
    store: ViewStore, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    view = store.view("counts")
    for block in blocks(view, 0, follow=False):
        change_writer("csv", view.schema)(block)
    assert capsysbinary.readouterr().out.decode().splitlines()[1:] == [
        '1,"insert","a",0',
        '2,"update","a",1',
        '3,"delete","a",1',
    ]


def test_json_has_the_sides_that_there_are(
    store: ViewStore, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    view = store.view("counts")
    for block in blocks(view, 0, follow=False):
        change_writer("ndjson", view.schema)(block)
    told = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert [sorted({"old", "new"} & each.keys()) for each in told] == [["new"], ["new", "old"], ["old"]]


def test_the_beginning_is_before_the_oldest_change_that_is_kept(
    store: ViewStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert before_oldest(store.view("counts")) == 0
    with store.sink("many", "id BIGINT, n BIGINT", "id", feed=1) as sink:
        sink.begin()
        for number in range(3):
            sink.commit(Batch(number, pa.table({"id": [1], "n": [number]})))
    since = before_oldest(store.view("many"))
    assert capsys.readouterr().err == f"note: {since} older changes are no longer retained\n"
    assert [change.sequence for change in store.view("many").changes(since)] == list(range(since + 1, 4))
