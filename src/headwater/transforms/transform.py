"""How an operator is used: ``orders.transform(dedup(on="id", within="1 hour"))``.

A transform is what a user's call makes. It knows no Spark and no schema: when it is called with a
DataFrame, the engine asks it for the operator over that DataFrame's columns. It is above the engine, so
that operators know nothing of Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headwater.operators.spec import OperatorSpec
from headwater.transforms.sample import Sample, run_over


@dataclass(frozen=True)
class Transform(OperatorSpec):
    """An operator that waits for its rows, and is called with them."""

    def __call__(self, rows: Any) -> Any:
        """Return what comes out of the operator for a DataFrame, or for a ``Sample`` of rows.

        - ``rows``: the DataFrame; ``DataFrame.transform`` hands it over.

        A DataFrame that is no stream gives what a batch gives. A stream runs inside a pipeline only.

        >>> from headwater import dedup
        >>> from headwater.transforms.sample import sample
        >>> orders = sample("id BIGINT, at TIMESTAMP", (1, "12:00"), (1, "12:05"), event_time="at")
        >>> orders.transform(dedup(on="id", within="1 hour")).show()
        id  at
        1   12:00:00
        """
        if isinstance(rows, Sample):
            return run_over(self, rows)
        from headwater.engine.plan.phases import (
            apply,  # it imports pyspark, which a declaration does not need
        )

        return apply(rows, self)
