"""A view as a feed: what read and follow say is the same; ``test_routes.py`` follows one over HTTP."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.errors import UsageError
from headwater.serve.push import view_feed
from headwater.serve.push.filters import PushFilter
from headwater.serve.push.view_feed import ViewFeed
from headwater.sinks import Batch
from headwater.views import ViewStore


def uncounted(size: int) -> None:
    """Count nothing."""


def test_read_and_follow_say_the_same_and_a_snapshot_goes_with_them(tmp_path: Path) -> None:
    with ViewStore(tmp_path / "views.db") as store:
        sink = store.sink("stock", "item STRING, n BIGINT", "item")
        sink.begin()
        for number in range(3):
            sink.commit(Batch(number, pa.table({"item": ["rum", "tea"], "n": [number, 1]})))
        feed, stop, followed = ViewFeed(store, "stock", "stock"), threading.Event(), []
        counted: list[int] = []
        read = [item for chunk in feed.read({0: 0}, PushFilter()) for item in chunk.items]
        for chunk in feed.follow({0: 0}, stop):
            followed += chunk.items
            if len(followed) == 4:
                stop.set()
        assert [i.data(PushFilter()) for i in read] == [i.data(PushFilter()) for i in followed]
        taken = feed.snapshot(PushFilter(("rum",), (("item", "rum"),)), counted.append)
        assert 0 < sum(counted) < 1_000
        assert [json.loads(row) for rows in taken.rows for row in rows] == [{"item": "rum", "n": 2}]
        assert taken.offsets == feed.newest() == {0: read[-1].reached}
        assert not feed.rebuilt_since({0: 1}) and feed.rebuilt_since({0: 1 << 41})


@pytest.mark.parametrize("since", ["x", "-1", "٣", "9" * 19, "9" * 5000])
def test_what_is_no_number_of_a_change_is_refused(tmp_path: Path, since: str) -> None:
    with ViewStore(tmp_path / "views.db") as store, pytest.raises(UsageError, match="has a number"):
        ViewFeed(store, "stock", "stock").check(since)


@pytest.mark.parametrize("bound", [("LARGEST_SNAPSHOT", 2), ("SNAPSHOT_BYTES", 30)])
def test_rows_that_are_too_many_or_too_large_to_begin_with_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: tuple[str, int]
) -> None:
    monkeypatch.setattr(view_feed, *bound)
    with ViewStore(tmp_path / "views.db") as store:
        sink = store.sink("stock", "item STRING, n BIGINT", "item")
        sink.begin()
        sink.commit(Batch(0, pa.table({"item": ["rum", "tea", "ale"], "n": [1, 2, 3]})))
        feed = ViewFeed(store, "stock", "stock")
        with pytest.raises(UsageError, match="more rows than") as refused:
            feed.snapshot(PushFilter(), uncounted)
        assert "key=" in str(refused.value.hint)
        assert len(list(feed.snapshot(PushFilter(("rum",), (("item", "rum"),)), uncounted).rows)) == 1
