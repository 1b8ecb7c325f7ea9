"""The views of pipelines, opened when they are first asked for: a pipeline may run for the first time later.

Invariant: a store is opened once, and what is not there yet is looked for again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from headwater.api.views import has_views, homes_beside, open_views
from headwater.errors import HeadwaterError
from headwater.pipeline.pipeline import Pipeline
from headwater.views import Views

LOOK_SECONDS = 1.0
"""How often new pipelines are looked for beside a log."""


class ViewStores(Mapping[str, Views]):
    """Open views by the name of their pipeline: of pipelines that are given, and of those beside a log."""

    def __init__(self, pipelines: Mapping[str, Pipeline], url: str | None = None):
        self._pipelines, self._url = pipelines, url
        self._open: dict[str, Views] = {}
        self._beside: dict[str, Path] = {}
        self._looked = float("-inf")
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> Views:
        views = self._open.get(name)
        return views if views is not None else self._opened(name)

    def __iter__(self) -> Iterator[str]:
        self._look()
        return iter([name for name in {**self._pipelines, **self._beside} if self._is_there(name)])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def opened(self) -> dict[str, Views] | None:
        """Return all stores if each of them is open, so that nothing is waited for; else None."""
        self._look()
        names = {*self._pipelines, *self._beside}
        opened = {name: self._open[name] for name in names if name in self._open}
        return opened if len(opened) == len(names) else None

    def _is_there(self, name: str) -> bool:
        try:
            self[name]
        except KeyError:
            return False
        return True

    def _opened(self, name: str) -> Views:
        self._look()
        with self._lock:
            if name not in self._open:
                self._open[name] = self._opener(name)()
            return self._open[name]

    def _opener(self, name: str) -> Callable[[], Views]:
        pipeline, home = self._pipelines.get(name), self._beside.get(name)
        if pipeline is not None and has_views(pipeline.home):
            return lambda: open_views(pipeline)
        if pipeline is None and home is not None and has_views(home):
            return lambda: open_views(home)
        raise KeyError(name)

    def _look(self) -> None:
        if self._url is None or time.monotonic() - self._looked < LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        try:
            self._beside = homes_beside(self._url)
        except (OSError, HeadwaterError):  # the next look may find them again
            return
