"""The view store against a dictionary: any batches, replays, deletions, restarts and takeovers."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headwater import Position
from headwater.errors import Fenced, OffsetLost
from headwater.sinks import Batch
from headwater.views import SqliteSink, ViewStore, open_views
from soaking import examples

KEYS = st.tuples(st.sampled_from("abc"), st.integers(0, 2))
ROWS = st.lists(st.tuples(KEYS, st.none() | st.integers(0, 3), st.booleans()), max_size=8)
FEED = 12

Key = tuple[str, int]
Contents = dict[Key, int | None]


class ViewMachine(RuleBasedStateMachine):
    """Commits by whichever runner is the newest, and everything that may go wrong around it."""

    @initialize()
    def start(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="headwater-views-"))
        self.versions: dict[int, Contents] = {1: {}}
        self.published = self.building = 1
        self.number = -1
        self.last: Batch | None = None
        self.noted: dict[int, list[tuple[Key, Any, Any]]] = {1: []}
        self.store = ViewStore(self.root / "views.db", durability="os")
        self.sink = self._begin()

    def teardown(self) -> None:
        if hasattr(self, "root"):
            self.store.close()
            shutil.rmtree(self.root)

    def _begin(self) -> SqliteSink:
        sink = self.store.sink("v", "k STRING, m INT, n BIGINT", ("k", "m"), version=self.building, feed=FEED)
        assert sink.begin() == self.number
        return sink

    # Doing

    @rule(rows=ROWS, skipped=st.integers(1, 3))
    def commit(self, rows: list[tuple[Key, int | None, bool]], skipped: int) -> None:
        self.number += skipped
        self.last = _batch(self.number, rows)
        assert self.sink.commit(self.last)
        self._apply(rows)

    def _apply(self, rows: list[tuple[Key, int | None, bool]]) -> None:
        contents, before = self.versions[self.building], dict(self.versions[self.building])
        for key, n, deleted in rows:
            contents.pop(key, None)
            if not deleted:
                contents[key] = n
        for key in sorted({key for key, _, _ in rows}):
            old, new = before.get(key, "none"), contents.get(key, "none")
            if old != new:
                self.noted[self.building].append((key, old, new))

    @rule()
    def replay(self) -> None:
        if self.last is not None:
            assert not self.sink.commit(self.last)

    @rule(rows=ROWS, back=st.integers(0, 5))
    def replay_an_older_number(self, rows: list[tuple[Key, int | None, bool]], back: int) -> None:
        if self.number >= 0:
            assert not self.sink.commit(_batch(max(0, self.number - back), rows))

    @rule()
    def open_again(self) -> None:
        self.store.close()
        self.store = ViewStore(self.root / "views.db", durability="os")
        self.sink = self._begin()

    @rule(rows=ROWS)
    def another_runner_takes_over(self, rows: list[tuple[Key, int | None, bool]]) -> None:
        replaced, self.sink = self.sink, self._begin()
        try:
            replaced.commit(_batch(self.number + 1, rows))
            raise AssertionError("not fenced")
        except Fenced:
            pass

    @rule()
    def build_another_version(self) -> None:
        if self.building == self.published and self.published < 4:
            self.building += 1
            self.versions[self.building], self.noted[self.building] = {}, []
            self.number, self.last = -1, None
            self.sink = self._begin()

    @rule()
    def publish(self) -> None:
        self.store.publish("v", self.building)
        self.published = self.building

    # Checking

    @invariant()
    def readers_see_the_published_version(self) -> None:
        with open_views(self.root / "views.db") as views:
            seen = views["v"].scan().to_pylist()
        contents = self.versions[self.published]
        assert seen == [{"k": k, "m": m, "n": contents[k, m]} for k, m in sorted(contents)]

    @invariant()
    def changes_lead_to_what_is_there(self) -> None:
        view, noted = self.store.view("v"), self.noted[self.published]
        first = (self.published - 1) << 40
        assert view.sequence() == first + len(noted)
        kept = list(view.changes(since=max(first, view.sequence() - FEED)))
        assert [(c.key, _n(c.old), _n(c.new)) for c in kept] == noted[-FEED:]
        assert [c.sequence for c in kept] == list(range(view.sequence() - len(kept) + 1, view.sequence() + 1))
        if len(noted) > FEED:
            try:
                next(view.changes())
                raise AssertionError("pruned changes were not told")
            except OffsetLost as error:
                assert error.missed == len(noted) - FEED

    @invariant()
    def how_far_it_has_got_is_kept(self) -> None:
        if self.number >= 0:
            view = self.store.view("v", self.building)
            assert view.position() == (Position("in", {0: self.number}),)
            assert view.watermark() == self.number


def _batch(number: int, rows: list[tuple[Key, int | None, bool]]) -> Batch:
    table = pa.table(
        {
            "k": pa.array([key[0] for key, _, _ in rows], pa.string()),
            "m": pa.array([key[1] for key, _, _ in rows], pa.int32()),
            "n": pa.array([n for _, n, _ in rows], pa.int64()),
            "_deleted": pa.array([deleted for _, _, deleted in rows], pa.bool_()),
        }
    )
    return Batch(number, table, (Position("in", {0: number}),), number)


def _n(row: dict[str, Any] | None) -> Any:
    return "none" if row is None else row["n"]


TestViewStore = ViewMachine.TestCase
TestViewStore.settings = examples(40, stateful_step_count=25)
