"""A broker that cannot be reached, or says no, is told as such within a bounded time."""

from __future__ import annotations

import socket
import time

import pytest

from headwater.errors import LogUnavailable
from headwater.log.open import open as open_log
from kafka_broker import USER, Broker

SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": USER}


@pytest.mark.kafka
def test_a_wrong_password_is_told_without_it(broker: Broker) -> None:
    with pytest.raises(LogUnavailable, match="denies access") as told:
        open_log(f"kafka://{broker.sasl_servers}", **SASL, **{"sasl.password": "hush-4711"})
    assert "hush-4711" not in str(told.value)


def test_an_unreachable_broker_is_told_in_seconds() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = time.monotonic()
    with pytest.raises(LogUnavailable, match=f"cannot reach Kafka at 127.0.0.1:{port}") as told:
        open_log(f"kafka://127.0.0.1:{port}")
    assert time.monotonic() - started < 8
    assert told.value.detail is not None
    assert "refused" in told.value.detail
