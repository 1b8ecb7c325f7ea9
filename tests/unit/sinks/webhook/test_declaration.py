"""What a webhook is declared to be."""

from __future__ import annotations

import pyarrow as pa
import pytest

from delivery_kit import SECRET
from headwater.errors import UsageError
from headwater.sinks.webhook.declaration import declare_webhook


def test_what_is_declared_is_checked_without_a_connection() -> None:
    declared = declare_webhook("https://shop.example/hook?token=hidden", SECRET, "id", "2 hours", 3)
    assert declared.what == 'webhook "https://shop.example/hook"'
    assert (declared.policy.retry_timeout, declared.policy.concurrency, declared.rate_limit) == (
        7200.0,
        3,
        None,
    )
    assert declared.shape(pa.schema([("id", pa.int64())])).key == ("id",)
    with pytest.raises(UsageError, match='no column "id"'):
        declared.shape(pa.schema([("other", pa.int64())]))
    with pytest.raises(UsageError):
        declare_webhook("https://shop.example/", SECRET, retry_timeout="soon")
    with pytest.raises(UsageError, match="under way"):
        declare_webhook("https://shop.example/", SECRET, concurrency=0)
