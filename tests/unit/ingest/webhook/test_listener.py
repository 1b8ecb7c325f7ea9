"""A webhook with a server of its own."""

from __future__ import annotations

import socket

import pytest

import headwater
from headwater import ingest
from headwater.connection_limits import LimitedConnection
from headwater.errors import UsageError
from headwater.ingest import BackgroundIngest, WebhookSettings
from webhook_kit import SECRET, post, signed


def test_it_goes_on_after_a_restart_with_ids_and_counts_of_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOOK", SECRET)
    settings = WebhookSettings("env:HOOK", listen="127.0.0.1:0")
    with headwater.open("memory:") as log:
        for _ in range(2):
            with BackgroundIngest(ingest.open_webhook("hook", "hooks", log=log, settings=settings)) as work:
                assert post(work.address, b"{}", signed("a", b"{}")).status == 200
        assert ingest.status(log, "hook").counts == {"deliveries": 2, "rows": 1, "duplicates": 1}
        assert sum(map(len, log.read("hooks"))) == 1


def test_without_a_secret_nothing_is_opened() -> None:
    with headwater.open("memory:") as log:
        with pytest.raises(UsageError, match="holds no secret"):
            ingest.open_webhook("hook", "hooks", log=log, settings=WebhookSettings("env:NO_SUCH_SECRET"))
        assert log.topics() == []


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST /hook HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 40_000, b"431"),
        (b"POST /hook HTTP/1.1\r\nHost: loc", b"408"),
        (b"", b"408"),
    ],
)
def test_a_head_that_is_huge_or_never_ends_is_refused_and_the_connection_closed(
    monkeypatch: pytest.MonkeyPatch, request_bytes: bytes, status: bytes
) -> None:
    monkeypatch.setenv("HOOK", SECRET)
    monkeypatch.setattr(LimitedConnection, "request_seconds", 0.2)
    settings = WebhookSettings("env:HOOK", listen="127.0.0.1:0")
    with (
        headwater.open("memory:") as log,
        BackgroundIngest(ingest.open_webhook("hook", "hooks", log=log, settings=settings)) as work,
    ):
        host, _, port = work.address.removeprefix("http://").partition("/")[0].rpartition(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(request_bytes)
            assert connection.recv(65536).startswith(b"HTTP/1.1 " + status)
        assert post(work.address, b"{}", signed("a", b"{}")).status == 200
