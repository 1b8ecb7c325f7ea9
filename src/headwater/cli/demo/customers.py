"""The database of the demo's customers: made, captured, and changed while somebody looks.

One customer, whom the generator does not know, is gold now and silver then, by a plain UPDATE; how long it
takes until a view shows it is measured. Invariant: leaving the ``with`` block ends the changes.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from headwater import BackgroundCapture, Pipeline, open_views
from headwater.api.captures import workers
from headwater.api.views import has_views
from headwater.closing import Closing
from headwater.errors import HeadwaterError

CUSTOMER, VIEW = "zoe", "gold_customers"
PAUSE, POLL = 4.0, 0.02
"""Seconds between two updates, and between two looks at the view."""
_UPDATE = "UPDATE customers SET tier = ?, since = ? WHERE customer = ?"


def prepare(pipeline: Pipeline) -> Path:
    """Make the database, and let its capture begin: from then on no version of a row is missed."""
    [capture] = pipeline.captures
    file = Path(capture.url.removeprefix("sqlite:"))
    import_module("crm").Crm(file).close()  # beside the pipeline's file
    for worker in workers(pipeline):
        worker.catch_up()
    return file


@contextmanager
def capturing(pipeline: Pipeline) -> Iterator[None]:
    """Capture meanwhile, as a pipeline does that runs."""
    with ExitStack() as captures:
        for worker in workers(pipeline):
            captures.enter_context(BackgroundCapture(worker))
        yield


@dataclass(frozen=True)
class Update:
    """A customer's new tier, on its way from the database to a view."""

    tier: str
    seconds: float | None = None
    """How long it took; None while it is on its way."""

    def text(self, width: int) -> str:
        """Return it in a line, a short one where the window is narrow."""
        arrival = "…" if self.seconds is None else f"after {self.seconds:.1f} s"
        statement = _UPDATE.replace("since = ?", "since = …").replace("?", "'{}'").format(self.tier, CUSTOMER)
        whole = f"crm.db: {statement}  ▶  view {VIEW} {arrival}"
        return whole if len(whole) <= width else f"crm.db: {CUSTOMER} is {self.tier}  ▶  {VIEW} {arrival}"


class Updates(Closing):
    """Changes the customer's tier again and again, in a thread of its own."""

    def __init__(self, pipeline: Pipeline, file: Path):
        self._pipeline, self._file = pipeline, file
        self.last: Update | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True, name="updates")
        self._thread.start()

    def close(self) -> None:
        """End the changes."""
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        # What fails here fails the pipeline, too, which tells it.
        with suppress(HeadwaterError, sqlite3.Error), closing(sqlite3.connect(self._file, timeout=30)) as db:
            with closing(import_module("crm").Crm(self._file)) as crm:
                crm.write([{"customer": CUSTOMER, "country": "fr", "tier": "silver", "since": _now()}])
            while not self._stop.wait(POLL if self.last is None else PAUSE):
                if has_views(self._pipeline.home):
                    self._update(db)

    def _update(self, db: sqlite3.Connection) -> None:
        with open_views(self._pipeline) as views:
            if VIEW not in views.names() or not views[VIEW].count():  # its first batch takes longer
                return
            tier = "silver" if self.last is not None and self.last.tier == "gold" else "gold"
            self.last, started = Update(tier), time.monotonic()
            with db:
                db.execute(_UPDATE, (tier, _now().isoformat(), CUSTOMER))
            while (views[VIEW].get(CUSTOMER) is not None) != (tier == "gold"):
                if self._stop.wait(POLL):
                    return
            self.last = replace(self.last, seconds=time.monotonic() - started)


def _now() -> datetime:
    return datetime.now(UTC)
