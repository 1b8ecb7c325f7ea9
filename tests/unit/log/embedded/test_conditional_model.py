"""Appends under conditions by two processes, against a plain list, with crashes at any byte of any write.

What one of the two is refused, and what it is told, is compared with what the list says; after a crash an
append is there whole, or not at all, and both go on.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.unit.log.embedded.test_model import Budget, Crash, under

from headwater.errors import Conflict
from headwater.log.conditional import ConditionalProducer
from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded import conditional_appender as appenders
from headwater.log.embedded.partition import writer
from headwater.log.expected_version import Condition
from headwater.log.position import Position
from headwater.values.keys import partition_of
from soaking import examples

PARTITIONS, KEYS, TAGS = 2, ["a", "b", "c"], ["x", "y", "z"]
PROBES = {partition_of(f"probe-{n}".encode(), PARTITIONS): f"probe-{n}" for n in range(9)}.values()
"""A key of each partition."""
ASKED = {
    "who": st.integers(0, 1),
    "key": st.sampled_from(KEYS),
    "tags": st.lists(st.sampled_from(TAGS), unique=True, max_size=2),
    "count": st.integers(1, 3),
    "on": st.sampled_from(["nothing", "version", "older", "new tag", "tags since"]),
}


class ConditionalMachine(RuleBasedStateMachine):
    """Appends of two processes, crashes, lost power, and an index that vanishes, in any order."""

    @initialize()
    def start(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="headwater-model-"))
        self.patched = pytest.MonkeyPatch()
        self.patched.setattr(writer, "SNAPSHOT_FRAMES", 3)
        self.patched.setattr(appenders, "FLUSH_POSTINGS", 5)
        self.stored: list[list[tuple[str, list[str], int]]] = [[] for _ in range(PARTITIONS)]
        self.counter = 0
        self.logs: list[EmbeddedLog] = []
        self.producers: list[ConditionalProducer] = []
        for who in range(2):
            self._open(who)

    def teardown(self) -> None:
        if hasattr(self, "root"):
            self.patched.undo()
            for each in (*self.producers, *self.logs):
                each.close()
            shutil.rmtree(self.root)

    @rule(**ASKED)
    def append(self, who: int, key: str, tags: list[str], count: int, on: str) -> None:
        conditions, is_refused = self._conditions(key, tags, on)
        rows = self._rows(key, count)
        if is_refused:
            with pytest.raises(Conflict):
                self.producers[who].append(rows, conditions=conditions, tags=tags)
        else:
            made = self.producers[who].append(rows, conditions=conditions, tags=tags)
            assert made.offsets[0] == len(self.stored[made.partition])
            self._store(key, tags, rows)

    @rule(**ASKED, budget=st.integers(0, 2500), power=st.booleans())
    def crash_in_append(
        self, who: int, key: str, tags: list[str], count: int, on: str, budget: int, power: bool
    ) -> None:
        conditions, is_refused = self._conditions(key, tags, on)
        rows = self._rows(key, count)
        spent, outcome = Budget(budget), "crashed"
        with pytest.MonkeyPatch.context() as patch:
            under(spent, patch)
            try:
                self.producers[who].append(rows, conditions=conditions, tags=tags)
                outcome = "stored"
            except Conflict:
                outcome = "refused"
            except Crash:
                pass
        assert outcome in ("crashed", "refused" if is_refused else "stored")
        if outcome == "crashed":
            for each in range(2) if power else [who]:
                self._kill(each)
            if power:  # heads are not synced
                for number in range(PARTITIONS):
                    (self.root / "topics" / "t" / str(number) / "head").write_bytes(b"")
            for each in range(2) if power else [who]:
                self._open(each)
            for probe in PROBES:  # what was written and not published is seen by whoever appends next
                self.producers[who].append([{"id": probe, "n": -1}])
            self._learn(key, tags, rows)
        elif outcome == "stored":
            self._store(key, tags, rows)

    @rule(who=st.integers(0, 1))
    def open_again(self, who: int) -> None:
        self.producers[who].close()
        self.logs[who].close()
        self._open(who)

    @rule()
    def lose_the_index(self) -> None:
        for each in (*self.producers, *self.logs):
            each.close()
        for path in (self.root / "topics" / "t").glob("tags.db*"):
            path.unlink()
        for who in range(2):
            self._open(who)

    @invariant()
    def both_say_what_the_list_says(self) -> None:
        for producer in getattr(self, "producers", []):
            for key in KEYS:
                mine = [(o, n) for o, (k, _, n) in enumerate(self._of(key)) if k == key]
                assert producer.version(key) == (mine[-1][0] + 1 if mine else 0)
                assert _numbers(producer, key=key) == [n for _, n in mine]
            for tag in TAGS:
                expected = [n for part in self.stored for _, tags, n in part if tag in tags]
                assert _numbers(producer, tags=[tag]) == expected

    def _conditions(self, key: str, tags: list[str], on: str) -> tuple[list[Condition], bool]:
        """Return conditions, and whether they do not hold."""
        mine = [offset for offset, (k, _, _) in enumerate(self._of(key)) if k == key]
        version = mine[-1] + 1 if mine else 0
        if on == "version":
            return [Condition(key, after=version)], False
        if on == "older":
            return [Condition(key, after=max(0, version - 1))], bool(mine)
        if on == "new tag":
            return [Condition(key, ("z",))], any(k == key and "z" in t for k, t, _ in self._of(key))
        if on == "tags since" and tags:
            half = {number: len(part) // 2 for number, part in enumerate(self.stored)}
            later = [t for number, part in enumerate(self.stored) for _, t, _ in part[half[number] :]]
            return [Condition(tags=tags, after=Position("t", half))], any(set(tags) <= set(t) for t in later)
        return [], False

    def _of(self, key: str) -> list[tuple[str, list[str], int]]:
        return self.stored[partition_of(key.encode(), PARTITIONS)]

    def _rows(self, key: str, count: int) -> list[dict[str, Any]]:
        self.counter += count
        return [{"id": key, "n": self.counter - count + number} for number in range(count)]

    def _store(self, key: str, tags: list[str], rows: list[dict[str, Any]]) -> None:
        self._of(key).extend((key, tags, row["n"]) for row in rows)

    def _learn(self, key: str, tags: list[str], rows: list[dict[str, Any]]) -> None:
        """Take over whether an append whose process was killed is there: whole, or not at all."""
        there = [n for n in _numbers(self.producers[0], key=key) if n >= rows[0]["n"]]
        assert there in ([], [row["n"] for row in rows])
        if there:
            self._store(key, tags, rows)
        for probe in PROBES:
            self._of(probe).append((probe, [], -1))

    def _open(self, who: int) -> None:
        log = EmbeddedLog(self.root, segment_bytes=1500)
        log.create_topic("t", "id STRING, n BIGINT", key="id", partitions=PARTITIONS)
        self.logs[who : who + 1] = [log]
        self.producers[who : who + 1] = [log.conditional_producer("t")]

    def _kill(self, who: int) -> None:
        """Let go of a process's files without anything that it would do at its end."""
        appender: Any = self.producers[who]._appender
        if appender._index is not None:
            appender._index.close()
        for each in appender._files.values():
            each.close()
        with suppress(OSError):
            appender._appender.close()


def _numbers(producer: ConditionalProducer, **what: Any) -> list[int]:
    return [row["n"] for batch in producer.read(**what) for row in batch.to_pylist()]


TestConditionalAppends = ConditionalMachine.TestCase
TestConditionalAppends.settings = examples(25, stateful_step_count=25)
