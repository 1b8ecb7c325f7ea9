"""What to write instead of what a node may not do: the words of every refusal of a plan.

Invariant: whatever is refused, a hint says what to write; ``docs/pipelines.md`` has the same list.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

_SPLIT = "Spark would see the rows of one micro-batch, not those before it"
_ROWS = (
    "write it with select, filter, withColumn, explode or functions; what needs other rows is an operator's"
)
_OPERATORS = "windows.tumbling, hopping or session for spans of time, scan for a running result"


@dataclass(frozen=True)
class Refusal:
    """What a node does, why not, and what to do."""

    what: str
    """Comes after the node's name."""
    detail: str
    hint: str
    tables: str | None = None
    """The hint where the rows are a table's."""
    joined: tuple[frozenset[str], frozenset[str]] = field(default=(frozenset(), frozenset()))
    """What a join is of."""


class NotRowByRow(Exception):  # it never leaves the engine: who knows the node tells it
    """A plan that is not row by row; ``read`` are the names of the rows that it is about."""

    def __init__(self, refusal: Refusal, read: frozenset[str] = frozenset()):
        super().__init__(refusal.what)
        self.refusal, self.read = refusal, read


def _spark(what: str, hint: str, tables: str | None = None, detail: str = _SPLIT) -> Refusal:
    return Refusal(f"uses {what}, which is not row by row", detail, hint, tables)


_GROUP = _spark(
    "groupBy or an aggregate",
    f"use {_OPERATORS}, latest for the newest row of each key",
    "use tables.group, which keeps its groups right as rows change and go",
)
_DISTINCT = _spark(
    "distinct or dropDuplicates", "use dedup(on=…, within=…), which remembers what it has seen"
)
_SORT = _spark(
    "orderBy or sort",
    "leave it out; @view(order=…) has rows that are read in an order",
    detail="results are kept by key, and not in an order of their own",
)
_LIMIT = _spark(
    "limit, offset or tail",
    "read as many rows of a view as you want: @view(order=…), agg.top_k for the most frequent",
    "use tables.greatest in tables.group, or read as many rows of a view as you want: @view(order=…)",
)
_SPREAD = _spark(
    "repartition or coalesce",
    "leave it out: rows are spread over tasks by themselves",
    detail="rows would lose their order, and of two rows of a key the later one counts",
)
_SAMPLE = _spark(
    "sample or randomSplit",
    'choose by what is in a row, as in filter(F.abs(F.xxhash64("id")) % 100 < 10)',
    detail="which rows it takes depends on how they are split",
)
_FOLDED = _spark("a function of groups", f"use {_OPERATORS}", "use tables.group, or scan over the changes")
_STATE = _spark("state of Spark's own", "use scan, whose fold has the state and the event")
_COGROUP = _spark(
    "a function of two groups",
    "use joins.within, lookup or as_of, and a function of the pairs",
    "use joins.tables, and a function of the pairs",
)
_SETS = _spark(
    "intersect or except",
    'use joins.within, with how="left" and a filter for rows that have no other',
    'use joins.tables, with how="left" and a filter for rows that have no other',
)
_PLANS = {
    "Aggregate": _GROUP,
    "Pivot": _GROUP,
    "Distinct": _DISTINCT,
    "Deduplicate": _DISTINCT,
    "DeduplicateWithinWatermark": _DISTINCT,
    "Window": _spark(
        "a window function",
        "use windows.sliding for a range of time, latest for row_number() = 1, scan for what came before",
    ),
    "Sort": _SORT,
    "GlobalLimit": _LIMIT,
    "LocalLimit": _LIMIT,
    "Offset": _LIMIT,
    "Tail": _LIMIT,
    "Repartition": _SPREAD,
    "RepartitionByExpression": _SPREAD,
    "RebalancePartitions": _SPREAD,
    "Sample": _SAMPLE,
    "FlatMapGroupsInPandas": _FOLDED,
    "FlatMapGroupsInArrow": _FOLDED,
    "FlatMapCoGroupsInPandas": _COGROUP,
    "FlatMapCoGroupsInArrow": _COGROUP,
    "FlatMapGroupsInPandasWithState": _STATE,
    "TransformWithState": _STATE,
    "TransformWithStateInPySpark": _STATE,
    "TransformWithStateInPandas": _STATE,
    "Intersect": _SETS,
    "Except": _SETS,
    "AsOfJoin": _spark("a join as of a time", "use joins.as_of"),
    "LateralJoin": _spark(
        "a lateral join", "use explode, or LATERAL VIEW explode(…)", detail="its subquery may be anything"
    ),
    "EventTimeWatermark": _spark(
        "withWatermark",
        'declare it at the source: event_time="at", lateness="10 minutes"',
        detail="time is decided at the source, for all who read it",
    ),
    "CollectMetrics": _spark("observe", "`headwater status` and `headwater run` have figures of every node"),
}

CONSTANTS = Refusal(
    "returns rows that come from no upstream",
    "they would come again with every micro-batch",
    "send them to a topic once, with `headwater produce`, and declare it as a source or a table",
)
FOREIGN = Refusal(
    "reads a stream that the pipeline does not know",
    "nobody would know how far it has been read",
    "declare it with source() or table(), and read it by a parameter of its name",
)
OUTSIDE = Refusal(
    "reads a file, or a table of Spark's catalog",
    "its rows may be others when a micro-batch is repeated, and when the node is verified",
    "declare it as a table, and use joins.lookup; constants are F.broadcast(spark.createDataFrame(…))",
)
SUBQUERY = Refusal(
    "has a subquery over an upstream",
    _SPLIT,
    "use joins.tables for two tables, joins.lookup or as_of with a table, joins.within for two streams",
)
LOOKED_AT = Refusal(
    "looks at its rows when it is called",
    "a function says what is to be done with rows, before there are any: count(), collect() or toPandas() "
    "have none to tell of",
    "return a DataFrame; what needs many rows is an operator's, as windows.tumbling or scan",
)
OUTER = Refusal(
    "joins constants in a way that gives more than the rows of its upstream",
    "a row that finds no other would come again with every micro-batch",
    "use an inner join, or an outer join that keeps the rows of the upstream",
)
NOT_BROADCAST = Refusal(
    "joins constants without F.broadcast",
    "Spark may bring the rows into another order, and of two rows of a key the later one counts",
    "write F.broadcast(…) around the constants, or /*+ BROADCAST(name) */ in SQL",
)
FILTERED = Refusal(
    "leaves out changes of a table before its operator",
    "a row that stops to fit, or is deleted, would stay as it was",
    "filter what comes out of the operator",
)
UNMARKED = Refusal(
    'leaves out the column "_deleted" of a table before its operator',
    "a row that is deleted would become a row of nulls",
    'keep "_deleted", as drop() and withColumn() do',
)
SEVERAL = Refusal(
    "shows a table beside other upstreams",
    "a row that is deleted, or that the code leaves out, would stay",
    "make a view of each, or use joins.tables",
)


def of(kind: str, plan: Any) -> Refusal:
    """Return what to write instead of a node of a plan."""
    if kind == "Aggregate" and "session_window" in str(plan.groupingExpressions()):
        return _spark("groupBy(session_window(…))", "use windows.session")
    if kind == "Aggregate" and "window" in str(plan.groupingExpressions()):
        return _spark("groupBy(window(…))", "use windows.tumbling, or windows.hopping where windows overlap")
    if kind.startswith("Streaming"):
        return FOREIGN
    return _PLANS.get(kind) or _spark(f"what Spark calls {kind}", _ROWS, detail="it is not known to be")


def joined(left: frozenset[str], right: frozenset[str]) -> Refusal:
    """Return what to write instead of a join of upstreams; which it is depends on what they are."""
    names = " and ".join(f'"{name}"' for name in (*sorted(left), *sorted(right - left)))
    return Refusal(f"joins {names} by Spark's join", _SPLIT, "", joined=(left, right))


def hint(refusal: Refusal, tables: Collection[str], read: Collection[str]) -> str:
    """Return the hint that fits what is refused of some upstreams, of which some are tables."""
    if not any(refusal.joined):
        return refusal.tables if refusal.tables and read and set(read) <= set(tables) else refusal.hint
    left, right = (side <= set(tables) for side in refusal.joined)
    if left and right:
        return "use joins.tables, which keeps the result right as both change"
    if left or right:
        return (
            "use joins.lookup for the table's row as it is now, joins.as_of for the one that was valid then"
        )
    return "use joins.within(…, on=…, before=…, after=…): what meets in a span of time"


def now(expression: str) -> Refusal:
    """Return what to write instead of what is another thing every moment."""
    return Refusal(
        f"asks for {expression}",
        "it is another when a micro-batch is repeated, and when the node is verified",
        "take the time from a column, as the event's own",
    )


def random(expression: str) -> Refusal:
    """Return what to write instead of chance."""
    return Refusal(
        f"uses {expression}, which gives another value each time",
        "a micro-batch that is repeated would have other rows, and nothing could be verified",
        'make it of what is in the row, as with F.xxhash64("id")',
    )
