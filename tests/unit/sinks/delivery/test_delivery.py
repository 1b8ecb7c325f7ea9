"""The words of deliveries."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from headwater.sinks.delivery.delivery import DELIVERED, OutgoingDelivery


def test_a_delivery_never_changes() -> None:
    with pytest.raises(FrozenInstanceError):
        OutgoingDelivery(1, "msg_1", b"{}").body = b"other"  # type: ignore[misc]
    assert DELIVERED.result == "delivered"
