"""What can be chosen for a capture."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.pipeline.captured import OnMisfit


@dataclass(frozen=True)
class CaptureSettings:
    """How a capture deals with what goes wrong, and what it tells."""

    on_error: OnMisfit = "stop"
    """What becomes of a row that its topic cannot hold."""
    max_retained: int | None = None
    """How many bytes the database may keep for it before it is given up."""
    alert_retained: int | None = None
    """Above how many somebody is to be warned; half of what it may keep at most if None."""
    transactions: bool = False
    """Whether a topic tells which transactions are whole."""

    @property
    def most_unnoticed(self) -> int | None:
        """How many bytes may be kept without a warning; None for any number."""
        if self.alert_retained is None and self.max_retained is not None:
            return self.max_retained // 2
        return self.alert_retained


DEFAULTS = CaptureSettings()
