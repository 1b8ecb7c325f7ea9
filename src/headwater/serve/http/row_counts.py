"""How many rows views have, for those who list them.

A store counts by looking at every row. Invariant: a number of rows comes with the number of a change, and is
that of the view when it had that change; a view that has not changed is not counted again, and one that
changes takes no more than a twentieth of the time to be counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.serve.http.throttled import ThrottledValues
from headwater.views import View


@dataclass(frozen=True)
class ViewRowCount:
    """The rows of a view, and when that was so."""

    rows: int
    sequence: int
    """The newest change when they were counted; what came while they were counted may be in it too."""


class RowCounts:
    """The rows of all views of a server, by pipeline and view."""

    def __init__(self) -> None:
        self._counted = ThrottledValues()

    def count(self, pipeline: str, view: View, newest: int | None = None) -> ViewRowCount:
        """Return the rows of a view: as they are, or as they were when it was last worth counting.

        ``newest`` is the number of its newest change, if that is known.
        """
        key = (pipeline, view.name)
        known = self._counted.peek(key)
        if known is not None and known.sequence == (view.sequence() if newest is None else newest):
            return known  # type: ignore[no-any-return]
        return self._counted.get(key, lambda: _counted(view))


def _counted(view: View) -> ViewRowCount:
    newest = view.sequence()  # before, not after: a change that is in the rows need not be told
    return ViewRowCount(view.count(), newest)
