"""Finds the rows on which code over a DataFrame fails: Spark names a task, never a row.

The plan is run once so that it reports them (``headwater.engine.failure.guarded_plan``). Where that does not
name any, the rows are bisected. Invariant: nothing is written, and a row that is named fails
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import pyarrow as pa
from pyspark.sql import DataFrame

from headwater import bisection
from headwater.engine.failure import failures, guarded_plan
from headwater.engine.failure.guarded_plan import ROW
from headwater.errors import HeadwaterError
from headwater.pipeline.node import Node

Code = Callable[[pa.Table], DataFrame]
"""Makes a DataFrame of rows, with a column ``ROW`` that no code of the user's sees where they have one."""


class FailingRowSearch:
    """Looks for rows of a table on which a node's code fails."""

    def __init__(self, node: Node, code: Code):
        self._node, self._code = node, code

    def failing(self, rows: pa.Table, limit: int) -> dict[int, str]:
        """Return the indexes of the rows that are to blame, first ones first, and the error of each.

        None is, where the code fails without any rows too: Spark is gone, or the code itself is wrong.
        """
        found = self._reported(rows, limit) or dict(islice(self._alone(rows), limit))
        return {} if found and self._error(rows.slice(0, 0)) is not None else found

    def _reported(self, rows: pa.Table, limit: int) -> dict[int, str]:
        """Return what the plan reports twice: what fails once may have failed for another reason."""
        numbered = rows.append_column(ROW, pa.array(range(rows.num_rows), pa.int64()))
        try:
            once = guarded_plan.failing(self._code(numbered), limit)
            chosen = numbered.take(list(once))
            twice = guarded_plan.failing(self._code(chosen), limit, with_messages=True) if once else {}
        except HeadwaterError:
            raise
        except Exception:  # a user's code raises anything, and not all of it is caught
            return {}
        messages = {row: self._message(rows.slice(row, 1), text) for row, text in twice.items()}
        return {row: text for row, text in messages.items() if text is not None}

    def _message(self, row: pa.Table, text: str) -> str | None:
        return failures.line_of(failures.error_from_text(self._node, text)) if text else self._error(row)

    def _alone(self, rows: pa.Table) -> Iterator[tuple[int, str]]:
        """Yield the rows that fail alone, and do so twice."""
        for row, _ in bisection.failing(
            rows.num_rows, lambda start, end: self._error(rows.slice(start, end - start))
        ):
            again = self._error(rows.slice(row, 1))
            if again is not None:
                yield row, again

    def _error(self, rows: pa.Table) -> str | None:
        try:
            self._code(rows).write.format("noop").mode("overwrite").save()
        except HeadwaterError:
            raise
        except Exception as error:
            return failures.one_line(self._node, error)
        return None
