"""Settings of a worker are checked when they are made."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.errors import UsageError
from headwater.queue import WorkerSettings


@pytest.mark.parametrize(
    "settings",
    [
        {"concurrency": 0},
        {"concurrency": "x"},
        {"concurrency": 1.5},
        {"backoff": "soon"},
        {"visible_after": "0 seconds"},
        {"stop_after": "?"},
    ],
)
def test_what_cannot_be_meant_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        WorkerSettings(**settings)
