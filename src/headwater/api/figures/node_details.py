"""One part of a pipeline in full: its code, what it reads and feeds, and how late its rows come."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from headwater.api.figures.overview import NodeOverview
from headwater.api.lateness import LatenessReport
from headwater.engine.figures.progress import node_deliveries
from headwater.engine.home.accounting import Accounting
from headwater.pipeline.declaration import Declaration
from headwater.pipeline.node import Node, SinkNode, ViewNode
from headwater.pipeline.pipeline import Pipeline
from headwater.pipeline.sink_target import SinkTarget
from headwater.sinks.delivery.figures import DeliveryStatus
from headwater.values.json_ready import JsonReady


@dataclass(frozen=True)
class LatenessHistogram(JsonReady):
    """How many rows of a topic came how late."""

    bounds: tuple[float, ...]
    """Seconds behind the clock, from the shortest on."""
    counts: tuple[int, ...]
    """Rows up to each bound and over the one before; the last is of those over all bounds."""


@dataclass(frozen=True)
class NodeDetails(JsonReady):
    """A source, table, stream, view or sink in full."""

    node: NodeOverview
    source: str | None
    """The text that declares it, where its file is there."""
    file: str
    line: int
    downstreams: tuple[str, ...]
    lateness: LatenessHistogram | None = None
    deliveries: DeliveryStatus | None = None
    """What waits in its outbox; None where it has none."""
    operations: tuple[str, ...] = ()
    """What can be asked of it: ``verify``, ``rebuild``, ``reset``."""
    target: str | None = None
    """What kind of target a sink has: ``postgres``, ``webhook``, ``push``; None of all others."""

    @property
    def accounting(self) -> Accounting:
        """What has become of the rows that it took in."""
        return self.node.accounting

    def facts(self) -> dict[str, Any]:
        """Return the facts of the node with those that are added here."""
        own = super().facts()
        del own["node"]
        accounting = self.accounting.facts()
        del accounting["out"]
        return {**self.node.facts(), **own, "accounting": accounting}


def node_details(pipeline: Pipeline, node: NodeOverview, report: LatenessReport | None = None) -> NodeDetails:
    """Return a part of a pipeline in full, with how late the rows of its topic came, if that is known."""
    declared = pipeline[node.name]
    return NodeDetails(
        node,
        source_text(declared),
        Path(declared.file).name,
        declared.line,
        tuple(each.name for each in pipeline.nodes if node.name in each.upstreams),
        None if report is None else histogram(report),
        node_deliveries(pipeline, declared) if isinstance(declared, Node) else None,
        _operations(declared),
        _target(declared),
    )


def _operations(declared: Declaration) -> tuple[str, ...]:
    possible = {
        "verify": declared.verifiable,
        "rebuild": declared.has_versions,
        "reset": isinstance(declared, ViewNode),
    }
    return tuple(name for name, can in possible.items() if can)


def _target(declared: Declaration) -> str | None:
    target = declared.target if isinstance(declared, SinkNode) else None
    return target.name if isinstance(target, SinkTarget) else None


def histogram(report: LatenessReport) -> LatenessHistogram:
    """Return how many rows came how late, between the settings that were judged.

    >>> from datetime import timedelta
    >>> from headwater.api.lateness import LatenessSetting
    >>> judged = [LatenessSetting(timedelta(seconds=each), late, False) for each, late in ((0, 5), (10, 2))]
    >>> histogram(LatenessReport("orders", 9, {}, tuple(judged), None, 0, 0, None)).counts
    (4, 3, 2)
    """
    over = [report.rows, *(each.late for each in report.settings), 0]
    counts = tuple(before - after for before, after in pairwise(over))
    return LatenessHistogram(tuple(each.lateness.total_seconds() for each in report.settings), counts)


def source_text(declared: Declaration) -> str | None:
    """Return the text of the user's file that declares something; None where it is not to be had."""
    if isinstance(declared, Node) and declared.code.function is not None:
        try:
            return inspect.getsource(declared.code.function)
        except (OSError, TypeError):  # made by no file
            return None
    text = next(
        (text for first, last, text in _statements(declared.file) if first <= declared.line <= last), ""
    )
    return text or (declared.code.statement if isinstance(declared, Node) else None)


@cache
def _statements(file: str) -> tuple[tuple[int, int, str], ...]:
    """Return the statements of a file, with their first and last lines; the innermost first."""
    try:
        text = Path(file).read_text()
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError):
        return ()
    return tuple(sorted(_pieces(text, tree), key=lambda each: each[1] - each[0]))


def _pieces(text: str, tree: ast.Module) -> Iterator[tuple[int, int, str]]:
    lines = text.splitlines()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr | ast.Assign | ast.AnnAssign) and node.end_lineno is not None:
            yield node.lineno, node.end_lineno, "\n".join(lines[node.lineno - 1 : node.end_lineno])
