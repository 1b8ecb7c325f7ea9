"""What a server serves: a log, the pipelines on it whose files are known, and the views that they keep.

Invariant: nothing here starts Spark or writes anything but events that are sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from starlette.requests import HTTPConnection

from headwater.closing import Closing
from headwater.log import Log
from headwater.pipeline.pipeline import Pipeline
from headwater.serve.http.row_counts import RowCounts
from headwater.serve.settings import ServeSettings
from headwater.views import Views


@dataclass(frozen=True)
class Served(Closing):
    """An open log, pipelines by name, and open views by the name of their pipeline."""

    log: Log
    pipelines: Mapping[str, Pipeline]
    views: Mapping[str, Views]
    settings: ServeSettings = field(default_factory=ServeSettings)
    row_counts: RowCounts = field(default_factory=RowCounts)
    """How many rows the views have, as far as that was counted."""
    closers: ExitStack = field(default_factory=ExitStack)
    """What else is to be closed with it, before the views and the log."""

    def close(self) -> None:
        """Close the views and the log."""
        self.closers.close()
        for views in self.views.values():
            views.close()
        self.log.close()


def served(connection: HTTPConnection) -> Served:
    """Return what the server of a request serves."""
    return connection.app.state.served  # type: ignore[no-any-return]


def stopping(connection: HTTPConnection) -> asyncio.Event:
    """Return the event that comes when the server is about to end: a stream then ends its answer."""
    return connection.app.state.stopping  # type: ignore[no-any-return]
