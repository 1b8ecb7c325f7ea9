"""How much a database may keep for a capture that is behind, before it is given up.

Invariant: what the database keeps is dropped only when it is more than the user has allowed.
"""

from __future__ import annotations

from headwater.capture.figures.gauges import Gauges
from headwater.capture.settings import CaptureSettings
from headwater.capture.source import CaptureSource
from headwater.errors import SourceRefused


class RetentionLimit:
    """Watches how many bytes a database keeps for one capture."""

    def __init__(self, source: CaptureSource, settings: CaptureSettings, gauges: Gauges):
        self._source, self._settings, self._gauges = source, settings, gauges

    def check(self) -> None:
        """Give up rather than let the database keep too much, and warn before that."""
        retained, most = self._retained(), self._settings.max_retained
        self._gauges.keep(self._source.title, retained, self._settings.most_unnoticed)
        if retained is not None and most is not None and retained > most:
            self._source.drop()
            raise SourceRefused(
                f"{self._source.title} kept {retained:,} bytes for this capture, which was given up",
                detail=f"at most {most:,} are allowed; what was not read is lost to it",
                hint="drop it (`headwater capture drop`) and begin it anew, with new snapshots",
            )

    def _retained(self) -> int | None:
        """Return how much is kept; who may not ask, and has set no limit, does without."""
        try:
            return self._source.retained()
        except SourceRefused:
            if self._settings.most_unnoticed is not None:
                raise
            return None
