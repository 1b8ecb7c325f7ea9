"""The verdict of ``verify`` on a node: how many rows are right, and which are not. No pyspark.

Invariant: where nothing was compared, it is neither right nor wrong, and says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.values.json_ready import JsonReady

EXAMPLES = 5
NOT_BEGUN = "it has not processed anything yet"
Row = Mapping[str, Any]
Rows = Sequence[Row]


@dataclass(frozen=True)
class Verdict(JsonReady):
    """How a node's stored results compare with those of a batch over the same input."""

    node: str
    equal: int = 0
    missing: tuple[Row, ...] = ()
    """Rows that the batch has and the node has not."""
    extra: tuple[Row, ...] = ()
    """Rows that the node has and the batch has not."""
    different: tuple[tuple[Row, Row], ...] = ()
    """Rows of one key: what the batch has, what the node has."""
    unproved: str | None = None
    """Why nothing can be proved, if that is so: then no row was compared."""
    aside: tuple[str, ...] = ()
    """Columns that were not compared: estimates, which another run may tell otherwise."""
    expired: int = 0
    """Rows that the batch has and the node has not, where rows go by themselves after a time."""
    undecided: int = 0
    """Keys that changed whenever they were looked at: they are neither equal nor wrong."""
    kind: str = ""
    """What the node is, where that is known."""

    @property
    def begun(self) -> bool:
        """Whether the node has processed anything."""
        return self.unproved != NOT_BEGUN

    @property
    def ok(self) -> bool:
        """Whether no row is wrong: all are equal, but for those that are undecided."""
        return not (self.missing or self.extra or self.different)

    def examples(self) -> Iterator[str]:
        """Yield some of what is wrong, in words."""
        yield from (f"missing {_text(row)}" for row in self.missing[:EXAMPLES])
        yield from (f"extra {_text(row)}" for row in self.extra[:EXAMPLES])
        yield from (f"should be {_text(a)}, is {_text(b)}" for a, b in self.different[:EXAMPLES])

    def facts(self) -> dict[str, Any]:
        """Return how many rows are right and wrong, and some of those that are wrong."""
        return {
            "node": self.node,
            "kind": self.kind,
            "ok": self.ok if self.unproved is None else None,
            **self.counts,
            "examples": [" ".join(example.split()) for example in self.examples()],
            "unproved": self.unproved,
            "aside": self.aside,
            "expired": self.expired,
            "undecided": self.undecided,
        }

    @property
    def counts(self) -> dict[str, int]:
        """How many rows are equal, missing, extra and different."""
        wrong = {"missing": self.missing, "extra": self.extra, "different": self.different}
        return {"equal": self.equal, **{name: len(rows) for name, rows in wrong.items()}}


def _text(row: Row) -> str:
    return "(" + ", ".join(f"{name}={value}" for name, value in row.items()) + ")"
