"""What a server serves is closed with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import UsageError
from headwater.serve.http.served import Served
from serve_kit import make_log, make_views


def test_log_and_views_are_closed(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    with make_views(tmp_path) as store, Served(log, {}, {"shop": store}):
        pass
    with pytest.raises(UsageError):
        log.lag("billing")
