"""What tests of a micro-batch share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headwater.log import Log
from headwater.log.open import open as open_log


@pytest.fixture
def log(url: str) -> Iterator[Log]:
    with open_log(url) as log:
        yield log
