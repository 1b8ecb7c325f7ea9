"""Runs a pipeline in a test: events in, time by hand, views out, and no sleeping.

Invariant: nothing outside the harness's own directory is touched, whatever log the pipeline names.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from headwater.closing import Closing
from headwater.errors import HeadwaterError
from headwater.log import Start
from headwater.log.open import open as open_log
from headwater.pipeline.pipeline import Pipeline

Row = Mapping[str, Any]


class Harness(Closing):
    """A pipeline under test, on a log of its own.

    - ``pipeline``: as it is declared; its own log, home and databases of views are not touched.
    - ``spark=None``: a session of yours; None makes one, or takes the one that is there.
    - ``limit=None``: how many rows a micro-batch has at the most; few, to see that the result does not depend
      on it.

    ``send`` gives events to a source or table, ``advance`` says that nothing older comes any more,
    ``step`` lets every node process all of its input, and the rest reads what has come of it. Between
    steps nothing is read. A step is one or more micro-batches; ``limit`` makes them small. A producer is
    never taken for idle, so time goes on only as events and ``advance`` say. Leaving the block removes
    everything.

    Restart: ``restart`` begins anew from what is stored, as after a crash.

    >>> def test_orders_are_added_up(harness):  # the fixture of headwater.testing.fixtures
    ...     running = harness(shop)
    ...     running.send("orders", {"id": 1, "cents": 500, "at": NOON})
    ...     running.advance(NOON + timedelta(minutes=1))
    ...     running.step()
    ...     assert running.view("totals") == [{"id": 1, "total": 500}]
    ...     running.verify()

    More in ``docs/testing.md``.
    """

    def __init__(self, pipeline: Pipeline, *, spark: Any = None, limit: int | None = None):
        from headwater.engine.runner import Runner

        self._directory = Path(tempfile.mkdtemp(prefix="headwater-harness-"))
        self.pipeline = _with_own_views(pipeline)
        self.pipeline.log, self.pipeline.home = f"file:{self._directory / 'log'}", self._directory / "home"
        self.pipeline.home_store = None
        self.log = open_log(self.pipeline.log)
        self._gate = self._directory / "open"
        self._make = partial(Runner, self.pipeline, spark=spark, limit=limit, patient=True, gate=self._gate)
        self._runner = self._make()

    def send(self, name: str, rows: Iterable[Row] | Row, *, producer: str = "test") -> None:
        """Append events to a source or table.

        - ``name``: of the source or table.
        - ``rows``: a row as a dict, or several.
        - ``producer="test"``: who sends them; events of one producer share its clock.
        """
        listed = [rows] if isinstance(rows, Mapping) else list(rows)
        with self.log.producer(self._topic(name), id=producer) as sender:
            sender.send_batch(listed)

    def delete(self, name: str, key: Any, *, at: datetime | None = None, producer: str = "test") -> None:
        """Delete a key of a table.

        - ``name``: of the table.
        - ``key``: its key; a tuple, if it has several columns.
        - ``at=None``: since when, where the table has an event time; now if None.
        - ``producer="test"``: who says so.
        """
        with self.log.producer(self._topic(name), id=producer) as sender:
            sender.delete(key, occurred=at)

    def advance(self, to: datetime, *, producer: str = "test") -> None:
        """Promise, at every source and table with an event time, that nothing older comes from a producer.

        - ``to``: the time.
        - ``producer="test"``: whose promise it is; with several the slowest holds the watermark.
        """
        for each in (*self.pipeline.sources, *self.pipeline.tables):
            if each.event_time is not None:
                with self.log.producer(self._topic(each.name), id=producer) as sender:
                    sender.mark(to)

    def step(self) -> None:
        """Let every node process all of its input; what a node raises is raised here."""
        with self._open():
            self._runner.catch_up()

    def restart(self) -> None:
        """Begin anew from what is stored, as after a crash."""
        self._runner.close()
        self._runner = self._make()

    def rebuild(self, name: str) -> None:
        """Compute a view anew from the log, and switch over to it.

        - ``name``: of the view.
        """
        with self._open():
            self._runner.rebuild(name)
        self.restart()

    def reset(self, name: str, to: Start) -> None:
        """Let a view begin anew from a position in its inputs.

        - ``name``: of the view.
        - ``to``: ``"earliest"``, ``"latest"``, an offset, a time of receipt or a position.
        """
        self._runner.reset(name, to)
        self.restart()

    def view(self, name: str) -> list[dict[str, Any]]:
        """Return a view's rows as dicts, in the order of the key.

        - ``name``: of the view.
        """
        return self._runner.store.view(name).scan().to_pylist()

    def changes(self, name: str, since: int = 0) -> list[Any]:
        """Return the changes of a view, in order.

        - ``name``: of the view.
        - ``since=0``: only those after this number.
        """
        return list(self._runner.store.view(name).changes(since))

    def stream(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a stream, in the order in which they were emitted.

        - ``name``: of the stream.
        """
        return self._rows(self._topic(name))

    def late(self, name: str) -> list[dict[str, Any]]:
        """Return the rows that came too late for a node.

        - ``name``: of the node.
        """
        topic = f"{self.pipeline.name}.{name}.late"
        return self._rows(topic) if topic in {each.name for each in self.log.topics()} else []

    def dead(self, name: str) -> list[dict[str, Any]]:
        """Return the records that a node has set aside, each with its error and where it came from.

        - ``name``: of the node.
        """
        topic = f"{self.pipeline.name}.{name}.dead"
        return self._rows(topic) if topic in {each.name for each in self.log.topics()} else []

    def verify(self) -> None:
        """Compute every view and stream again as a batch; raise if one differs."""
        from headwater.engine.proof.verify import verify

        for node in self.pipeline.order():
            verdict = verify(self._runner, node.name) if node.verifiable else None
            if verdict is not None and not verdict.ok:
                raise HeadwaterError(
                    f"{node.title} is not what a batch over the same input gives",
                    detail="; ".join(verdict.examples()),
                )

    def close(self) -> None:
        """Stop, and remove everything."""
        self._runner.close()
        self.log.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    @contextmanager
    def _open(self) -> Iterator[None]:
        """Let nodes read within the block, and only there: events that are sent together come together."""
        self._gate.touch()
        try:
            yield
        finally:
            self._gate.unlink()

    def _topic(self, name: str) -> str:
        topic: str | None = self.pipeline[name].readable_topic
        if topic is None:
            raise HeadwaterError(f'"{name}" has no topic', hint="read a view with view()")
        return topic

    def _rows(self, topic: str) -> list[dict[str, Any]]:
        return [row for batch in self.log.read(topic) for row in batch.to_pylist()]


def _with_own_views(pipeline: Pipeline) -> Pipeline:
    """Return a pipeline whose views are all kept in its home, whatever store they name."""
    made = copy.copy(pipeline)
    made.views = None
    made._declared = {name: each.stored_in_home() for name, each in pipeline._declared.items()}
    return made
