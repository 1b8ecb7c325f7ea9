"""How a process manager is doing, for who watches it from another thread."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.values.json_ready import JsonReady


@dataclass(frozen=True)
class ProcessStatus(JsonReady):
    """What a process has done since it was opened, and what is left."""

    handled: int = 0
    """Events that were handled, those of a replay left out."""
    behind: int = 0
    """Records that its group has yet to handle, whoever does."""
    last_error: str | None = None
    """What it has failed with last; None where nothing has failed."""
