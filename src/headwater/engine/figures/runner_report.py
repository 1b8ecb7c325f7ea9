"""What the last runner of a pipeline has noted of itself: how its nodes and inputs are doing, and when.

Invariant: a runner that is gone is never taken for one that runs, for longer than ``FRESH`` seconds; on the
machine that it ran on not at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from headwater.engine.figures.figure_store import reading
from headwater.engine.figures.status import Status
from headwater.engine.home.accounting import Accounting
from headwater.engine.home.checkpoint import ClockSkew
from headwater.errors import HeadwaterError
from headwater.liveness import may_be_alive
from headwater.sinks.delivery.figures import DeliveryStatus
from headwater.values.json_ready import json_ready

FRESH = 10.0
"""Seconds after which a runner that runs has noted something anew."""
NODE, INPUT, CAPTURE = "node", "input", "capture"


@dataclass(frozen=True)
class InputFigures:
    """A source or a table, as the runner sees it."""

    name: str
    records: int
    """Records of its topic that can be read."""
    rate: float
    """Records per second, of late."""
    clock: int | None = None
    """The clock that the nodes have heard of it, in microseconds since 1970."""


@dataclass(frozen=True)
class RunFigures:
    """All that a runner notes at one time."""

    step: str | None = None
    """What goes on before the nodes run."""
    nodes: tuple[Status, ...] = ()
    inputs: tuple[InputFigures, ...] = ()
    captures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Statuses of captures, as JSON has them, by name."""

    def rows(self) -> list[tuple[str, str, str]]:
        """Return it as it is stored: what each is, its name, and its figures."""
        nodes = [(NODE, each.node, _stored_status(each)) for each in self.nodes]
        inputs = [(INPUT, each.name, vars(each)) for each in self.inputs]
        captures = [(CAPTURE, name, facts) for name, facts in self.captures.items()]
        listed: list[tuple[str, str, Any]] = [*nodes, *inputs, *captures]
        return [(part, name, json.dumps(facts)) for part, name, facts in listed]


@dataclass(frozen=True)
class RunnerReport:
    """The last runner of a pipeline, and what it has noted."""

    host: str
    pid: int
    started: float
    """In seconds since 1970, and so the others."""
    noted: float
    ended: float | None
    figures: RunFigures

    def is_running(self, now: float) -> bool:
        """Tell whether the runner is there: it has not ended, and was heard of just now."""
        if self.ended is not None or abs(now - self.noted) > FRESH:
            return False
        return may_be_alive(self.host, self.pid)


def read_runner_report(home: Path) -> RunnerReport | None:
    """Return what the last runner of the pipeline with a home has noted; None where none has."""
    with reading(home) as connection:
        if connection is None:
            return None
        connection.execute("BEGIN")  # both are of one time
        query = "SELECT host, pid, started, noted, ended, step FROM runner"
        runner = connection.execute(query).fetchone()
        if runner is None:
            return None
        rows = connection.execute("SELECT part, name, facts FROM latest").fetchall()
    host, pid, started, noted, ended, step = runner
    figures = _figures(step, [(part, name, json.loads(facts)) for part, name, facts in rows])
    return RunnerReport(host, pid, started, noted, ended, figures)


def _figures(step: str | None, rows: list[tuple[str, str, dict[str, Any]]]) -> RunFigures:
    return RunFigures(
        step,
        tuple(_status(facts) for part, _, facts in rows if part == NODE),
        tuple(InputFigures(**facts) for part, _, facts in rows if part == INPUT),
        {name: facts for part, name, facts in rows if part == CAPTURE},
    )


def _stored_status(status: Status) -> dict[str, Any]:
    """Return a status as it is stored: figures as they are, and an error with all it says."""
    error = status.error
    facts: dict[str, Any] = {each.name: getattr(status, each.name) for each in fields(status)}
    return {
        **facts,
        "ahead": [vars(each) for each in status.ahead],
        "accounting": vars(status.accounting),
        "error": None if error is None else [error.message, error.detail, error.hint],
        "alert": json_ready(status.alert),
        "deliveries": None if status.deliveries is None else vars(status.deliveries),
    }


def _status(facts: Mapping[str, Any]) -> Status:
    error = facts["error"]
    told = None if error is None else HeadwaterError(error[0], detail=error[1], hint=error[2])
    deliveries = facts.get("deliveries")
    typed = {
        "error": told,
        "ahead": tuple(ClockSkew(**each) for each in facts["ahead"]),
        "accounting": Accounting(**facts["accounting"]),
        "deliveries": None if deliveries is None else DeliveryStatus(**deliveries),
        "largest_keys": tuple((text, share) for text, share in facts.get("largest_keys", ())),
    }
    return Status(**{**facts, **typed})
