"""Finds the records on which a node's code fails: Spark names a task, never a row.

The input of the failed batch is halved, and halved again, until single records are left that fail
by themselves. Invariant: nothing is written, and a record that is named fails alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from headwater.engine import applying, failures
from headwater.engine.applying import Capturing
from headwater.engine.calling import call
from headwater.engine.dead import Culprit
from headwater.engine.inputs import Inputs
from headwater.engine.shape import Shape
from headwater.errors import LogUnavailable, PipelineError
from headwater.log import Position
from headwater.node import Declaration, Node
from headwater.sinks.fitting import DELETED

MOST = 100
"""Records of one batch that are looked for; code that fails on more is wrong, not its input."""


class Poisoned(PipelineError):
    """A batch that cannot be computed because of some of its records."""

    def __init__(self, node: Node, culprits: list[Culprit]):
        super().__init__(
            f"{node.title} failed on {len(culprits)} record{'s' if len(culprits) != 1 else ''}",
            detail=str(culprits[0]),
            hint='correct the code, or set such records aside with on_error="dead_letter"',
            place=node.place,
        )
        self.culprits = culprits


@dataclass(frozen=True)
class Span:
    """Records of one partition, from an offset to another."""

    topic: str
    partition: int
    start: int
    end: int

    def halves(self) -> tuple[Span, Span]:
        """Return both halves of two records or more."""
        middle = (self.start + self.end) // 2
        return replace(self, end=middle), replace(self, start=middle)


def find(shape: Shape, inputs: Inputs, first: list[Position], last: list[Position]) -> list[Culprit]:
    """Return the records between two positions on which a node's code fails, up to ``MOST`` of them."""
    search = _Search(shape, inputs)
    found: list[Culprit] = []
    for span in _spans(first, last):
        for culprit in search.within(span):
            found.append(culprit)
            if len(found) == MOST:
                return found
    return found


class _Search:
    def __init__(self, shape: Shape, inputs: Inputs):
        self._node, self._upstreams, self._inputs = shape.node, shape.upstreams, inputs
        self._table = shape.table

    def within(self, span: Span) -> Iterator[Culprit]:
        error = self._error(span) if span.start < span.end else None
        if error is None:
            return
        if span.end - span.start == 1:
            again = self._error(span)  # what fails once may have failed for another reason
            if again is not None:
                yield Culprit(span.topic, span.partition, span.start, again)
            return
        for half in span.halves():
            yield from self.within(half)

    def _error(self, span: Span) -> str | None:
        """Compute what comes before the operator for one span, and no rows of other inputs."""
        capturing = Capturing()
        with applying.during(capturing):
            rows = call(self._node, {name: self._frame(each, span) for name, each in self._upstreams.items()})
        if capturing.stage is not None:
            rows = capturing.stage.rows
        try:
            rows.write.format("noop").mode("overwrite").save()
        except Exception as error:
            if LogUnavailable.__name__ in str(error):  # raised in a worker; no record is to blame
                raise LogUnavailable(
                    "the log cannot be read", detail=failures.brief(self._node, error)
                ) from error
            return failures.brief(self._node, error)
        return None

    def _frame(self, each: Declaration, span: Span) -> DataFrame:
        if getattr(each, "topic", None) != span.topic:
            return self._inputs.empty(each)
        start, end = (Position(span.topic, {span.partition: at}) for at in (span.start, span.end))
        rows = self._inputs.part(each, start, end)
        return rows.filter(~rows[DELETED]) if each.name == self._table else rows


def _spans(first: list[Position], last: list[Position]) -> Iterator[Span]:
    before = {each.topic: each.offsets for each in first}
    for each in last:
        for partition, end in each.offsets.items():
            yield Span(each.topic, partition, before.get(each.topic, {}).get(partition, 0), end)
