"""What notifications are declared to be."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater import targets
from headwater.errors import UsageError


def test_what_cannot_be_meant_is_refused() -> None:
    for contact in ("ops@shop.example", "", "mailto:a b"):
        with pytest.raises(UsageError, match="contact"):
            targets.push("{item}", contact)
    with pytest.raises(UsageError, match="no limit"):
        targets.push("{item}", "mailto:a@b.example", rate_limit="many")
    with pytest.raises(UsageError, match='no column "item"'):
        targets.push("{item}", "mailto:a@b.example").check(pa.schema([("other", pa.string())]))
