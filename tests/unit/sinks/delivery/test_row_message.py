"""A row is a message, and a deletion is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from headwater.sinks.delivery.row_message import MessagePerRow
from headwater.values.fitting import Fitted


class Names(MessagePerRow):
    def message(self, row: dict[str, Any]) -> bytes:
        return str(row["name"]).encode()


def test_each_row_is_a_message_and_a_deletion_says_nothing() -> None:
    rows = pa.record_batch({"name": ["ada", "bob"]})
    assert Names().payloads(Fitted(rows, np.array([False, True]))) == [b"ada", None]
    assert Names().body("insert", b"ada", 1.0) == b"ada"
