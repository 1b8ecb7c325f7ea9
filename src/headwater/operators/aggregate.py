"""What an aggregate is: partial results of groups of rows, which can be merged in any order.

Invariant: merging partial results gives the same, however the rows were split among them and in
whatever order they are merged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa

from headwater.operators.event_time import Times
from headwater.operators.groups import Numbers


class Aggregate(ABC):
    """A way to make one result of many rows; a frozen dataclass, pickled to the workers."""

    @abstractmethod
    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return the columns out for rows of a schema, or refuse it with an error."""

    @abstractmethod
    def state(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return the columns of a partial result; their names begin with the name and a dot."""

    @abstractmethod
    def partial(self, rows: pa.Table, at: Times, groups: Numbers, count: int) -> list[pa.Array]:
        """Return one partial result for each group from 0 to count - 1; every group has a row."""

    @abstractmethod
    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        """Return partial results merged by group; their order makes no difference."""

    @abstractmethod
    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        """Return the columns out, one row for each partial result."""
