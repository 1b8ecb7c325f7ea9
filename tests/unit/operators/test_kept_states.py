"""States that were stored before must mean the same: each operator goes on from one of its version.

``kept/`` has, for each operator and version, what a step has stored, a chunk or the runs of its containers,
and what the next step made of it. A release that cannot go on from it, or comes to something else, raises
``Operator.version``; files of the new version are written by ``python
tests/unit/operators/test_kept_states.py``, which never changes one that is there.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.feather as feather
import pytest

import headwater.operators
from headwater.operators.aggregates import agg
from headwater.operators.decide import Decide, Decision
from headwater.operators.event_time import FOREVER
from headwater.operators.memory.operator_memory import StoredMemory
from headwater.operators.memory.run import Stretch
from headwater.operators.operator import Operator
from headwater.operators.spec import Side
from headwater.schema import parse
from headwater.transforms import joins, tables, windows
from headwater.transforms.rows import dedup, latest, scan

KEPT = Path(__file__).parent / "kept"


class Given(NamedTuple):
    """The rows of two steps of an input."""

    side: Side
    steps: tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]

    def tables(self) -> list[pa.Table]:
        return [_table(self.side.schema, each) for each in self.steps]


def _table(schema: pa.Schema, rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


EVENTS = Given(
    Side(parse("k STRING, x DOUBLE, v BIGINT, at TIMESTAMP"), "at"),
    (
        [("a", 0.1, 5, 1_000_000), ("b", None, 7, 2_000_000), ("a", 1e16, -3, 6_500_000)],
        [
            ("b", -0.5, 2, 7_000_000),
            ("a", 0.2, 5, 6_000_000),
            (None, 4.0, None, 9_000_000),
            ("c", 1.0, 9, 8_000_000),
        ],
    ),
)
TABLE = Given(
    Side(parse("k STRING, name STRING, at TIMESTAMP, _deleted BOOLEAN"), "at", ("k",)),
    (
        [("a", "ada", 500_000, False), ("b", "bob", 600_000, False), ("c", "cyd", 700_000, False)],
        [("a", "eve", 7_500_000, False), ("b", None, 8_500_000, True)],
    ),
)
COMMANDS = Given(
    Side(parse("key STRING, request_id STRING, amount BIGINT, partition INT, offset BIGINT"), None),
    (
        [("a", "1", 5, 0, 0), ("b", "1", 7, 1, 0), ("a", "2", -3, 0, 1)],
        [("a", "1", 5, 0, 2), ("b", "2", 2, 1, 1), ("c", "1", 9, 1, 2), ("a", "3", 4, 0, 3)],
    ),
)
ALL = {
    "rows": agg.count(),
    "sum_x": agg.sum("x"),
    "sum_v": agg.sum("v"),
    "mean_x": agg.mean("x"),
    "rate_v": agg.rate("v"),
    "var_x": agg.variance("x"),
    "dev_v": agg.stddev("v"),
    "min_x": agg.min("x"),
    "max_v": agg.max("v"),
    "any_v": agg.any("v"),
    "first_x": agg.first("x"),
    "last_v": agg.last("v"),
    "all_v": agg.collect("v"),
    "kinds": agg.distinct("k"),
    "middle": agg.exact_quantile("x", 0.5),
    "about": agg.approx_distinct("v"),
    "near": agg.quantile("x", 0.5),
    "top": agg.top_k("k"),
    "seen": agg.bloom("k", expected=10),
}


def added(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    return {"total": (state["total"] if state else 0) + (event["v"] or 0)}


class Balance:
    """Commands that add to a balance, which is their reply too."""

    reply_schema = parse("balance BIGINT")

    def load(self, stored: bytes) -> int:
        return int(stored)

    def store(self, state: int) -> bytes:
        return str(state).encode()

    def fold(self, replies: Iterable[dict[str, Any]]) -> int:
        return max((reply["balance"] for reply in replies), default=0)

    def decide(self, state: int, command: dict[str, Any]) -> Decision:
        return Decision(state + command["amount"], {"balance": state + command["amount"]}, True)


class Case(NamedTuple):
    """An operator, and the rows of two steps."""

    operator: Operator[Any]
    steps: list[pa.Table]


def alone(door: Any, given: Given = EVENTS) -> Case:
    return Case(door.build(given.side), given.tables())


def paired(door: Any, left: Given, right: Given) -> Case:
    schema = door.pairing.schema(door.name, left.side.schema, right.side.schema)
    both = zip(left.tables(), right.tables(), strict=True)
    return Case(door.build(left.side, right.side), [door.pairing.sent(*each, schema) for each in both])


FEW = {"n": agg.count(), "x": agg.sum("x"), "v": agg.last("v")}
CASES: dict[str, Callable[[], Case]] = {
    "Dedup": lambda: alone(dedup("k", "3 seconds")),
    "Latest": lambda: alone(latest("k")),
    "Decide": lambda: Case(Decide(Balance()), COMMANDS.tables()),
    "Scan": lambda: alone(scan(added, "k", "total BIGINT")),
    "Hopping": lambda: alone(windows.hopping("4 seconds", "2 seconds", by="k", **ALL)),
    "Sliding": lambda: alone(windows.sliding("4 seconds", by="k", **FEW)),
    "Session": lambda: alone(windows.session("4 seconds", by="k", **FEW)),
    "Within": lambda: paired(
        joins.within(None, on="k", after="5 seconds", how="full", prefix="r_"), EVENTS, EVENTS
    ),
    "AsOf": lambda: paired(joins.as_of(None, on="k", prefix="r_"), EVENTS, TABLE),
    "Lookup": lambda: paired(joins.lookup(None, on="k", prefix="r_"), EVENTS, TABLE),
    "TableJoin": lambda: paired(joins.tables(None, on="k", how="full", prefix="r_"), TABLE, TABLE),
    "TableGroup": lambda: alone(tables.group("name", n=agg.count(), first=agg.min("at")), TABLE),
}


class FilesByName:
    """Runs of containers, each in a file that has its name behind that of the operator."""

    def __init__(self, stem: str):
        self._stem, self._count = stem, 0

    def put(self, table: pa.Table) -> Stretch:
        name = f"{self._stem}.run{self._count}.arrow"
        self._count += 1
        feather.write_feather(table, str(KEPT / name), compression="uncompressed")
        return Stretch(name, 0)

    def get(self, stretch: Stretch) -> pa.Table:
        return feather.read_table(KEPT / stretch.file)

    put_mapped, map = put, get


def stem(name: str, operator: Operator[Any]) -> str:
    return f"{name}.{operator.version}"


def restored(name: str, case: Case) -> Any:
    """Return the state that a step has left in files."""
    state = case.operator.initial_state(case.steps[0].schema)
    path = KEPT / stem(name, case.operator)
    stored = json.loads(Path(f"{path}.memory.json").read_text())
    case.operator.memory(state).open(StoredMemory.from_json(stored), FilesByName(path.name))
    return state


def results(case: Case, state: Any) -> pa.Table:
    """What comes of the second step, and of the end of time."""
    last = case.steps[1]
    steps = ((last, 4_000_000), (last[:0], FOREVER))
    return pa.concat_tables([case.operator.step(state, *step).out for step in steps])


def keep(name: str, case: Case) -> None:
    """Write what the first step leaves, and what the next one makes of it."""
    state, path = case.operator.initial_state(case.steps[0].schema), KEPT / stem(name, case.operator)
    case.operator.step(state, case.steps[0], 0)
    stored = case.operator.memory(state).save(FilesByName(path.name)).to_json()
    Path(f"{path}.memory.json").write_text(json.dumps(stored, indent=1) + "\n")
    out = results(case, restored(name, case))
    feather.write_feather(out, f"{path}.out.arrow", compression="uncompressed")


@pytest.mark.parametrize("name", CASES)
def test_an_operator_goes_on_from_a_state_of_its_version(name: str) -> None:
    case = CASES[name]()
    found = results(case, restored(name, case))
    kept = feather.read_table(KEPT / f"{stem(name, case.operator)}.out.arrow")
    anew = results(case, case.operator.initial_state(case.steps[0].schema))
    assert kept.to_pylist() != anew.to_pylist(), "the state makes a difference"
    assert found.schema.equals(kept.schema), "raise the operator's version, and write what it keeps now"
    assert repr(found.to_pylist()) == repr(kept.to_pylist()), "raise the operator's version, as above"


def test_no_operator_is_left_out() -> None:
    known: set[str] = set()
    waiting = [Operator]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith(headwater.operators.__name__) and not inspect.isabstract(kind):
            known.add(kind.__name__)
    assert known == set(CASES)


if __name__ == "__main__":
    KEPT.mkdir(exist_ok=True)
    for name, make in CASES.items():
        case = make()
        if not (KEPT / f"{stem(name, case.operator)}.out.arrow").exists():
            keep(name, case)
